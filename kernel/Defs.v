(** The definitions that have to be believed: histories, what they leave open, the language of
    levels, and what it means that a history satisfies a level. All other files prove something about
    these. "§" names the section of docs/language.md, or of docs/glossary.md, that a notion follows. *)
From Coq Require Import PArith NArith List Bool Relations.
Import ListNotations.

(** * Histories (glossary § Histories) *)

Definition tid := positive.            (* transactions; T0, the initial state, is number 1 *)
Definition key := positive.
Definition value := N.
Definition T0 : tid := 1%positive.

(** What a read says of the version that it saw: its value, a set that has the value, a set that does
    not, or all elements of a list (formats § Values; glossary: set-read). *)
Inductive result := Is (v : value) | OneOf (l : list value) | NoneOf (l : list value) | ListIs (l : list value).
Definition matches (r : result) (v : value) : bool :=
  match r with
  | Is w => N.eqb w v
  | OneOf l => existsb (N.eqb v) l
  | NoneOf l => negb (existsb (N.eqb v) l)
  | ListIs _ => false
  end.
(** A write gives a register a value. It appends an element to a list, which is a key whose reads
    return lists. *)
Inductive op := W (k : key) (v : value) | R (k : key) (r : result).

Inductive outcome := Committed | Aborted | Indeterminate.

Record txn := Txn {
  session : positive;
  status : outcome;
  began : option N;                    (* when it began and ended, if known *)
  ended : option N;
  ops : list op }.

Record history := History {
  initial : key -> list value;         (* the values that a read of the initial version may return *)
  beginning : key -> list value;       (* the elements of the initial list *)
  keys : list key;                     (* each key that the history names, used or not *)
  txns : list txn }.                   (* each session in its order *)

(** Elements with numbers, from [i] on. *)
Fixpoint numbered {A} (i : positive) (l : list A) : list (positive * A) :=
  match l with [] => [] | x :: r => (i, x) :: numbered (Pos.succ i) r end.

(** * What a history leaves open (§ What it means: the assignment) *)

Record choice := Choice {
  took_effect : tid -> bool;           (* the indeterminate transactions that count *)
  source : tid -> positive -> tid;     (* the transaction from which an external read read *)
  order : key -> list tid;             (* the versions of each key, without that of T0 *)
  total : list tid }.                  (* an order of all transactions, where the level has one *)

(** The transactions that count, with their numbers: 2, 3, … in the order of the history. *)
Definition counts (c : choice) (p : tid * txn) : bool :=
  match status (snd p) with Committed => true | Aborted => false | Indeterminate => took_effect c (fst p) end.
Definition included (h : history) (c : choice) : list (tid * txn) := filter (counts c) (numbered 2 (txns h)).

(** § Relations: T. *)
Definition is_in h c (t : tid) : Prop := t = T0 \/ exists x, In (t, x) (included h c).

(** The values that some operations wrote to a key, in their order. *)
Fixpoint written (k : key) (l : list op) : list value :=
  match l with
  | [] => []
  | W k' v :: r => if Pos.eqb k k' then v :: written k r else written k r
  | R _ _ :: r => written k r
  end.
(** The last write of a key, of operations that are listed backwards. *)
Definition last_write (k : key) (l : list op) : option value := hd_error (written k l).

(** Each read: the number of the operation in its transaction, the key, the result, and the earlier
    writes of the key by the transaction itself, the last one first. *)
Fixpoint reads (i : positive) (before l : list op) : list (positive * key * result * list value) :=
  match l with
  | [] => []
  | W k v :: r => reads (Pos.succ i) (W k v :: before) r
  | R k v :: r => (i, k, v, written k before) :: reads (Pos.succ i) before r
  end.

(** § Relations: W[x]. T0 wrote every key. *)
Definition writer (h : history) (c : choice) (u : tid) (k : key) : Prop :=
  u = T0 \/ exists x v, In (u, x) (included h c) /\ last_write k (rev (ops x)) = Some v.

(** [v] is a value of the version of [k] that [u] wrote: of its last write. *)
Definition wrote (h : history) (c : choice) (u : tid) (k : key) (v : value) : Prop :=
  (u = T0 /\ In v (initial h k)) \/
  exists x, In (u, x) (included h c) /\ last_write k (rev (ops x)) = Some v.

(** The elements that transactions, in this order, appended to the initial list. *)
Definition appended (h : history) (c : choice) (k : key) (l : list tid) : list value :=
  flat_map (fun u => match find (fun p => Pos.eqb (fst p) u) (included h c) with
    | Some p => written k (ops (snd p)) | None => [] end) l.

(** Operation [i] of [t] is a read of [k] with this result, and no own write precedes it
    (glossary: external read). *)
Definition external (h : history) (c : choice) (t : tid) (i : positive) (k : key) (r : result) : Prop :=
  exists x, In (t, x) (included h c) /\ In (i, k, r, []) (reads 1 [] (ops x)).

(** Another transaction that may count, or the initial state, wrote what a read of [t] returned
    (glossary: candidate). A list is always looked for. *)
Definition explicable (h : history) (t : tid) (k : key) (r : result) : Prop :=
  match r with
  | ListIs _ => True
  | _ => exists u v, u <> t /\ matches r v = true /\ ((u = T0 /\ In v (initial h k)) \/
      exists x, In (u, x) (numbered 2 (txns h)) /\ status x <> Aborted /\ last_write k (rev (ops x)) = Some v)
  end.

(** [a] comes before [b] in a list. *)
Definition before {A} (l : list A) (a b : A) : Prop :=
  exists l1 l2, l = l1 ++ l2 /\ In a l1 /\ In b l2.

(** What an external read may say: of a register, a value of the version of its source; of a list, the
    elements up to the version of its source, none of them its own. *)
Definition explained (h : history) (c : choice) (t : tid) (k : key) (r : result) (u : tid) : Prop :=
  match r with
  | ListIs l => exists l1 l2, order c k = l1 ++ l2 /\ u = last l1 T0 /\ ~ In t l1 /\
      l = beginning h k ++ appended h c k l1
  | _ => exists v, wrote h c u k v /\ matches r v = true
  end.
(** What a read after own writes may say: the last one; of a list, the elements before the version of
    its transaction, and the own ones so far. *)
Definition own_explained (h : history) (c : choice) (t : tid) (k : key) (r : result) (own : list value) : Prop :=
  match r with
  | ListIs l => exists l1 l2, order c k = l1 ++ t :: l2 /\ l = (beginning h k ++ appended h c k l1) ++ rev own
  | _ => exists v, hd_error own = Some v /\ matches r v = true
  end.

(** § What it means: a choice explains each external read that anything explains, and orders the
    writers of each key. If reads are judged, it explains all reads. *)
Definition legal (judged : bool) (h : history) (c : choice) : Prop :=
  (forall t i k r, external h c t i k r -> judged = true \/ explicable h t k r ->
    source c t i <> t /\ explained h c t k r (source c t i)) /\
  (forall t x i k r w own, judged = true -> In (t, x) (included h c) ->
    In (i, k, r, w :: own) (reads 1 [] (ops x)) -> own_explained h c t k r (w :: own)) /\
  (forall k, NoDup (T0 :: order c k)) /\
  (forall k u, In u (T0 :: order c k) <-> writer h c u k).

(** * The language (§ Grammar) *)

Definition var := nat.

(** Names with the variable of their key; [None] is the union over all keys. *)
Inductive set := AllT | Writers (x : option var) | Readers (x : option var).
Inductive rel := So | Rt | Init | Wr (x : option var) | Ww (x : option var) | Rw (x : option var) | Co.

Inductive expr :=
  | Rel (r : rel) | Id | Lift (s : set)
  | Union (e f : expr) | Inter (e f : expr) | Minus (e f : expr) | Seq (e f : expr)
  | Inv (e : expr) | Plus (e : expr) | Opt (e : expr)
  | ForKey (x : var) (e : expr).

(** [InOrder e] is "require e in co", or that the order was declared to contain e. *)
Inductive check := Acyclic (e : expr) | Irreflexive (e : expr) | Empty (e : expr) | InOrder (e : expr).

Record spec := Spec {
  has_order : bool;                    (* whether it has "exists co : order on T" *)
  checks : list check }.

(** * The meaning of the language (§ Relations, § Grammar, § What it means) *)

Definition env := var -> key.
Definition bind (x : var) (k : key) (n : env) : env := fun y => if Nat.eqb x y then k else n y.
(** [k] is the key of a name, which is any key for a name without one. *)
Definition keyed (n : env) (x : option var) (k : key) : Prop :=
  match x with Some y => k = n y | None => True end.

Section Meaning.
  Variables (h : history) (c : choice).

  (** § Relations: an indeterminate transaction has incoming edges of so and rt, but no outgoing. *)
  Definition so a b := exists x y, In (a, x) (included h c) /\ In (b, y) (included h c) /\
    status x = Committed /\ session x = session y /\ (a < b)%positive.
  Definition rt a b := a <> b /\ exists x y e s, In (a, x) (included h c) /\ In (b, y) (included h c) /\
    status x = Committed /\ ended x = Some e /\ began y = Some s /\ (e < s)%N.
  Definition init (a b : tid) := a = T0 /\ b <> T0 /\ is_in h c b.
  Definition wr k a b := exists i r, external h c b i k r /\ explicable h b k r /\ source c b i = a.
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
    | Writers (Some y) => writer h c a (n y)
    | Writers None => exists k, In k (keys h) /\ writer h c a k      (* not even T0, without keys *)
    | Readers x => exists k i r, keyed n x k /\ external h c a i k r /\ explicable h a k r
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

  (** The order of all transactions has each of them once. *)
  Definition ordered : Prop := NoDup (total c) /\ forall t, In t (total c) <-> is_in h c t.
End Meaning.

(** § What it means: a level judges reads if a check says where they read from. The kernel is given no
    lists for other levels, because lists show an order of versions even where they are not judged. *)
Fixpoint of_sources (e : expr) : bool :=
  match e with
  | Rel (Wr _) | Rel (Rw _) => true
  | Rel _ | Lift _ | Id => false
  | Union e f | Inter e f | Minus e f | Seq e f => of_sources e || of_sources f
  | Inv e | Plus e | Opt e | ForKey _ e => of_sources e
  end.
Definition judges_reads (s : spec) : bool :=
  existsb (fun k => match k with Acyclic e | Irreflexive e | Empty e | InOrder e => of_sources e end) (checks s).

Definition satisfies (s : spec) (h : history) : Prop :=
  exists c, legal (judges_reads s) h c /\ (has_order s = true -> ordered h c) /\
    forall k, In k (checks s) -> holds h c k.
