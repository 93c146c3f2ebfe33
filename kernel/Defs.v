(** What is to be believed: histories, choices, the language, and what it means that a history
    satisfies a specification. Everything else is proved against this file. *)
From Coq Require Import PArith NArith List Bool Relations.
Import ListNotations.

(** * Histories *)

Definition tid := positive.      (* transactions; T0, the initial state, is number 1 *)
Definition key := positive.
Definition value := N.
Definition T0 : tid := 1%positive.

(** What a read says of the value: this one, one of these, or none of these. *)
Inductive result := Is (v : value) | OneOf (l : list value) | NoneOf (l : list value).
Definition matches (r : result) (v : value) : bool :=
  match r with
  | Is w => N.eqb w v
  | OneOf l => existsb (N.eqb v) l
  | NoneOf l => negb (existsb (N.eqb v) l)
  end.
Inductive op := W (k : key) (v : value) | R (k : key) (r : result).

Inductive outcome := Committed | Aborted | Indeterminate.

Record txn := Txn {
  session : positive;
  status : outcome;
  began : option N;              (* when, if known *)
  ended : option N;
  ops : list op }.

Record history := History {
  initial : key -> value;        (* what T0 wrote *)
  txns : list txn }.             (* sessions in their order *)

Fixpoint numbered {A} (i : positive) (l : list A) : list (positive * A) :=
  match l with [] => [] | x :: r => (i, x) :: numbered (Pos.succ i) r end.

(** * What a history leaves open *)

Record choice := Choice {
  took_effect : tid -> bool;         (* which transactions of unknown outcome did *)
  source : tid -> positive -> tid;   (* where an external read took its value from *)
  order : key -> list tid;           (* the versions of each key, that of T0 left out *)
  total : list tid }.                (* an order of all transactions, where the level has one *)

(** The transactions that count, with their numbers: 2, 3, … in the order of the history. *)
Definition counts (c : choice) (p : tid * txn) : bool :=
  match status (snd p) with Committed => true | Aborted => false | Indeterminate => took_effect c (fst p) end.
Definition included (h : history) (c : choice) : list (tid * txn) := filter (counts c) (numbered 2 (txns h)).

Definition is_in h c (t : tid) : Prop := t = T0 \/ exists x, In (t, x) (included h c).

(** The last write of a key, of operations that are listed backwards. *)
Fixpoint last_write (k : key) (l : list op) : option value :=
  match l with
  | [] => None
  | W k' v :: r => if Pos.eqb k k' then Some v else last_write k r
  | R _ _ :: r => last_write k r
  end.

(** Each read: the number of the operation in its transaction, the key, the value that was read, and
    the transaction's own last write of that key before it. *)
Fixpoint reads (i : positive) (before l : list op) : list (positive * key * result * option value) :=
  match l with
  | [] => []
  | W k v :: r => reads (Pos.succ i) (W k v :: before) r
  | R k v :: r => (i, k, v, last_write k before) :: reads (Pos.succ i) before r
  end.

Definition key_of (o : op) : key := match o with W k _ => k | R k _ => k end.
Definition keys (h : history) : list key := flat_map (fun x => map key_of (ops x)) (txns h).

(** [u] wrote [k], and [v] was its last value. *)
Definition wrote (h : history) (c : choice) (u : tid) (k : key) (v : value) : Prop :=
  (u = T0 /\ v = initial h k) \/
  exists x, In (u, x) (included h c) /\ last_write k (rev (ops x)) = Some v.

(** Operation [i] of [t] is a read of [k] that no own write precedes, and says [v]. *)
Definition external (h : history) (c : choice) (t : tid) (i : positive) (k : key) (v : result) : Prop :=
  exists x, In (t, x) (included h c) /\ In (i, k, v, None) (reads 1 [] (ops x)).

(** [a] stands before [b] in a list. *)
Definition before {A} (l : list A) (a b : A) : Prop :=
  exists l1 l2, l = l1 ++ l2 /\ In a l1 /\ In b l2.

Definition legal (h : history) (c : choice) : Prop :=
  (forall t i k r, external h c t i k r -> source c t i <> t /\
    exists v, wrote h c (source c t i) k v /\ matches r v = true) /\
  (forall t x i k r w, In (t, x) (included h c) -> In (i, k, r, Some w) (reads 1 [] (ops x)) -> matches r w = true) /\
  (forall k, NoDup (T0 :: order c k)) /\
  (forall k u, In u (T0 :: order c k) <-> exists v, wrote h c u k v).

(** * The language *)

Definition var := nat.

Inductive set := AllT | Writers (x : option var) | Readers (x : option var).

Inductive rel := So | Rt | Init | Wr (x : option var) | Ww (x : option var) | Rw (x : option var) | Co.

Inductive expr :=
  | Rel (r : rel) | Id | Lift (s : set)
  | Union (e f : expr) | Inter (e f : expr) | Minus (e f : expr) | Seq (e f : expr)
  | Inv (e : expr) | Plus (e : expr) | Opt (e : expr)
  | ForKey (x : var) (e : expr).

Inductive check := Acyclic (e : expr) | Irreflexive (e : expr) | Empty (e : expr) | InOrder (e : expr).

Record spec := Spec {
  has_order : bool;              (* exists co : order on T *)
  checks : list check }.

(** * What it means *)

Definition env := var -> key.
Definition bind (x : var) (k : key) (n : env) : env := fun y => if Nat.eqb x y then k else n y.
(** The key of a keyed name; any key, where it has none. *)
Definition keyed (n : env) (x : option var) (k : key) : Prop :=
  match x with Some y => k = n y | None => True end.

Section Meaning.
  Variables (h : history) (c : choice).

  (** Nothing comes after a transaction of unknown outcome. *)
  Definition so a b := exists x y, In (a, x) (included h c) /\ In (b, y) (included h c) /\
    status x = Committed /\ session x = session y /\ (a < b)%positive.
  Definition rt a b := a <> b /\ exists x y e s, In (a, x) (included h c) /\ In (b, y) (included h c) /\
    status x = Committed /\ ended x = Some e /\ began y = Some s /\ (e < s)%N.
  Definition init (a b : tid) := a = T0 /\ b <> T0 /\ is_in h c b.
  Definition wr k a b := exists i v, external h c b i k v /\ source c b i = a.
  Definition ww k a b := before (T0 :: order c k) a b.
  Definition rw k a b := a <> b /\ exists u, wr k u a /\ ww k u b.

  Definition rel_means (n : env) (r : rel) (a b : tid) : Prop :=
    match r with
    | So => so a b \/ init a b
    | Rt => rt a b \/ init a b
    | Init => init a b
    | Wr x => exists k, keyed n x k /\ wr k a b
    | Ww x => exists k, keyed n x k /\ ww k a b
    | Rw x => exists k, keyed n x k /\ rw k a b
    | Co => before (total c) a b
    end.

  Definition set_means (n : env) (s : set) (a : tid) : Prop :=
    match s with
    | AllT => is_in h c a
    | Writers x => exists k v, keyed n x k /\ wrote h c a k v
    | Readers x => exists k i v, keyed n x k /\ external h c a i k v
    end.

  Fixpoint means (n : env) (e : expr) (a b : tid) : Prop :=
    match e with
    | Rel r => rel_means n r a b
    | Id => a = b /\ is_in h c a
    | Lift s => a = b /\ set_means n s a
    | Union e f => means n e a b \/ means n f a b
    | Inter e f => means n e a b /\ means n f a b
    | Minus e f => means n e a b /\ ~ means n f a b
    | Seq e f => exists m, means n e a m /\ means n f m b
    | Inv e => means n e b a
    | Plus e => clos_trans _ (means n e) a b
    | Opt e => (a = b /\ is_in h c a) \/ means n e a b
    | ForKey x e => exists k, In k (keys h) /\ means (bind x k n) e a b
    end.

  Definition holds (k : check) : Prop :=
    let n : env := fun _ => 1%positive in
    match k with
    | Acyclic e => forall a, ~ clos_trans _ (means n e) a a
    | Irreflexive e => forall a, ~ means n e a a
    | Empty e => forall a b, ~ means n e a b
    | InOrder e => forall a b, means n e a b -> before (total c) a b
    end.

  (** An order of all transactions is one. *)
  Definition ordered : Prop := NoDup (total c) /\ forall t, In t (total c) <-> is_in h c t.
End Meaning.

(** What a level does not speak of it does not judge. *)
Fixpoint of_reads (e : expr) : bool :=
  match e with
  | Rel (Wr _) | Rel (Rw _) | Lift (Readers _) => true
  | Rel _ | Lift _ | Id => false
  | Union e f | Inter e f | Minus e f | Seq e f => of_reads e || of_reads f
  | Inv e | Plus e | Opt e | ForKey _ e => of_reads e
  end.
Definition check_of_reads (k : check) : bool :=
  match k with Acyclic e | Irreflexive e | Empty e | InOrder e => of_reads e end.
Definition without_reads (h : history) : history := History (initial h)
  (map (fun x => Txn (session x) (status x) (began x) (ended x)
    (filter (fun o => match o with W _ _ => true | R _ _ => false end) (ops x))) (txns h)).
Definition judged (s : spec) (h : history) : history :=
  if existsb check_of_reads (checks s) then h else without_reads h.

Definition satisfies (s : spec) (h : history) : Prop :=
  let h := judged s h in
  exists c, legal h c /\ (has_order s = true -> ordered h c) /\
    forall k, In k (checks s) -> holds h c k.
