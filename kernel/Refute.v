(** The checker of refutations: clauses that hold of every choice, the last one empty. *)
From Coq Require Import PArith NArith List Bool Relations FMapPositive Lia.
From Kernel Require Import Defs Witness Legal CheckWitness.
Import ListNotations.

(** * Literals and steps *)

Inductive atom :=
  | Src (t : tid) (i : positive) (u : tid)      (* read i of t takes what u wrote *)
  | Bef (k : key) (a b : tid)                   (* a precedes b in the order of k *)
  | Prec (a b : tid)                            (* a precedes b in the order of all *)
  | Taken (t : tid).                            (* t counts *)

Definition literal := (bool * positive)%type.   (* a sign, and the number of an atom *)
Definition clause := list literal.

Inductive edge :=
  | Known (r : rel) (a b : tid) (ins : list positive)   (* so, rt, init; that b counts *)
  | Read (v : positive)                         (* wr *)
  | Over (v : positive)                         (* ww, or an order of all *)
  | Anti (v w : positive).                      (* rw: the source of the read, and that it precedes *)

Inductive proof_step :=
  | Own (t : tid) (ins : list positive)         (* a read that does not return the own write *)
  | Choose (t : tid) (i : positive) (vs ins : list positive)
  | Cycle (number : nat) (rounds : nat) (edges : list edge)
  | Line (vs : list positive)
  | Either (v w : positive) (ins : list positive)       (* one of two orders *)
  | Inside (v w : positive)                     (* who is read from, or ordered, counts *)
  | Unlike (v w : positive)                     (* two sources *)
  | First (v : positive) (ins : list positive)  (* T0 comes first *)
  | Shows (t : tid) (i : positive) (e : value) (vs ins : list positive)  (* who appended an element counts *)
  | Listed (t : tid) (i v : positive) (ins : list positive)              (* a list shows an order *)
  | Torn (t : tid) (i : positive) (a : tid) (ins : list positive)        (* and what [a] appended otherwise *)
  | Rup (c : clause) (hints : list positive).

Record refutation := Refutation { atoms : M.t atom; steps : list proof_step }.

Definition entry := (rel * key * tid * tid)%type.
Definition pairs := list (tid * tid).

(** * What the history says *)

Record facts := Facts {
  f_txns : M.t txn;
  f_writes : M.t (M.t value);
  f_reads : M.t (M.t (key * result));           (* external ones *)
  f_sourced : tid -> key -> result -> bool;     (* whether a read has a source in every choice *)
  f_writers : M.t (M.t (list tid));             (* by key and value *)
  f_versions : M.t (list (value * tid));        (* by key *)
  f_lists : M.t unit;                           (* keys of which a list was read *)
  f_elements : M.t (M.t (list tid));            (* of these keys: who wrote a value, by key and value *)
  f_keys : M.t unit }.

Definition key_of (o : op) : key := match o with W k _ => k | R k _ => k end.
Definition value_key (v : value) : positive := N.succ_pos v.
Definition external_reads (x : txn) : list (positive * (key * result)) :=
  flat_map (fun r => match r with (i, k, v, []) => [(i, (k, v))] | _ => [] end) (reads 1 [] (ops x)).
Definition writers_by_value (inc : list (tid * txn)) : list (key * (positive * tid)) :=
  flat_map (fun p => map (fun kv => (fst kv, (value_key (snd kv), fst p)))
    (M.elements (last_writes (ops (snd p))))) inc.
Definition list_keys (h : history) : M.t unit :=
  set_of (flat_map (fun x => flat_map (fun o => match o with R k (ListIs _) => [k] | _ => [] end) (ops x)) (txns h)).
Definition elements (lists : M.t unit) (inc : list (tid * txn)) : list (key * (positive * tid)) :=
  flat_map (fun p => flat_map (fun o => match o with
    | W k v => if M.mem k lists then [(k, (value_key v, fst p))] else []
    | R _ _ => [] end) (ops (snd p))) inc.
Definition facts_of (h : history) (judged : bool) : facts :=
  let inc := possible h in
  let versions := versions_of h in {|
    f_txns := table (fun x => x) inc;
    f_writes := table (fun x => last_writes (ops x)) inc;
    f_reads := table (fun x => table (fun p => p) (external_reads x)) inc;
    f_sourced := fun t k r => sourced h judged t k r versions;
    f_writers := M.map group (group (writers_by_value inc));
    f_versions := versions;
    f_lists := list_keys h;
    f_elements := M.map group (group (elements (list_keys h) inc));
    f_keys := set_of (keys h) |}.

Definition same (a b : tid) : bool := Pos.eqb a b.

Definition adjacent (l : pairs) : M.t (list tid) := group l.
Definition tidy (l : pairs) : pairs :=
  flat_map (fun p => map (fun b => (fst p, fst b)) (M.elements (set_of (snd p)))) (M.elements (group l)).
Definition compose (l m : pairs) : pairs :=
  let next := adjacent m in flat_map (fun p => map (fun b => (fst p, b)) (get (snd p) next)) l.
Fixpoint reach (next : M.t (list tid)) (fuel : nat) (work : list tid) (seen : M.t unit) : M.t unit :=
  match fuel, work with
  | S n, x :: r =>
    if M.mem x seen then reach next n r seen
    else reach next n (get x next ++ r) (M.add x tt seen)
  | _, _ => seen
  end.
Definition plus (l : pairs) : pairs :=
  let next := adjacent l in
  let fuel := S (length l + length l) in
  flat_map (fun p => map (fun b => (fst p, fst b)) (M.elements (reach next fuel (snd p) (M.empty _))))
    (M.elements next).

Section Eval.
  Variable F : facts.
  Definition surely (t : tid) : bool :=
    same t T0 || match M.find t (f_txns F) with Some x => certain x | None => false end.
  Definition writes_it (t : tid) (k : key) : bool :=
    same t T0 || match M.find t (f_writes F) with Some m => M.mem k m | None => false end.
  Definition read_of (t : tid) (i : positive) : option (key * result) :=
    match M.find t (f_reads F) with
    | Some m => match M.find i m with
      | Some (k, r) => if f_sourced F t k r then Some (k, r) else None
      | None => None end
    | None => None
    end.

  Variable L : list entry.
  Variable nodes : list tid.
  Variable local_keys : list key.

  Definition key_is (n : env) (x : option var) (k : key) : bool :=
    match x with Some y => Pos.eqb k (n y) | None => true end.
  Definition fits (n : env) (r : rel) (e : entry) : bool :=
    match e with (q, k, _, _) =>
      match r, q with
      | So, So | Rt, Rt | Init, Init | Co, Co => true
      | So, Init | Rt, Init => true
      | Wr x, Wr _ | Ww x, Ww _ | Rw x, Rw _ => key_is n x k
      | _, _ => false
      end end.
  Definition test (n : env) (s : set) (t : tid) : bool :=
    match s with
    | AllT => true
    | Writers None =>
      if same t T0 then negb (M.is_empty (f_keys F))
      else match M.find t (f_writes F) with
        Some m => existsb (fun p => M.mem (fst p) (f_keys F)) (M.elements m) | None => false end
    | Writers (Some x) => writes_it t (n x)
    | Readers x => match M.find t (f_reads F) with
        | Some m => existsb (fun p => key_is n x (fst (snd p)) && f_sourced F t (fst (snd p)) (snd (snd p))) (M.elements m)
        | None => false end
    end.
  Definition identity : pairs := map (fun t => (t, t)) nodes.

  Fixpoint eval (n : env) (e : expr) : pairs :=
    match e with
    | Rel r => map (fun e => match e with (_, _, a, b) => (a, b) end) (filter (fits n r) L)
    | Id => identity
    | Lift s => map (fun t => (t, t)) (filter (test n s) nodes)
    | Union a b => eval n a ++ eval n b
    | Inter a b => let m := eval n b in
        filter (fun p => existsb (fun q => same (fst p) (fst q) && same (snd p) (snd q)) m) (eval n a)
    | Minus a Id => filter (fun p => negb (same (fst p) (snd p))) (eval n a)
    | Minus _ _ => []                            (* a part says nothing of it *)
    | Seq a b => tidy (compose (eval n a) (eval n b))
    | Inv a => map (fun p => (snd p, fst p)) (eval n a)
    | Plus a => plus (tidy (eval n a))
    | Opt a => identity ++ eval n a
    | ForKey x a => flat_map (fun k => eval (bind x k n) a) local_keys
    end.
End Eval.

Definition has_loop (l : pairs) : bool := existsb (fun p => same (fst p) (snd p)) l.

Section Lists.
  Variables (h : history) (F : facts).
  Definition by_value (k : key) (v : value) : list tid :=
    match M.find k (f_writers F) with Some m => get (value_key v) m | None => [] end.
  (** From whom a read with this result may have read. *)
  Definition candidates (k : key) (r : result) : list tid :=
    match r with
    | ListIs l =>
      match strip (beginning h k) l with Some [] => [T0] | _ => [] end ++
      match rev l with e :: _ => by_value k e | [] => [] end
    | _ =>
      (if existsb (matches r) (initial h k) then [T0] else []) ++
      match r with
      | Is v => by_value k v
      | _ => map snd (filter (fun p => matches r (fst p)) (get k (f_versions F)))
      end
    end.
  Definition writers_of (k : key) (e : value) : list tid :=
    match M.find k (f_elements F) with Some m => get (value_key e) m | None => [] end.
  Definition only_by (k : key) (a : tid) (e : value) : bool := forallb (same a) (writers_of k e).
  (** A list without the initial elements, and without own ones at its end. *)
  Definition shown (k : key) (l own : list value) : option (list value) :=
    match strip (beginning h k) l with
    | Some l => match strip own (rev l) with Some m => Some (rev m) | None => None end
    | None => None
    end.
  (** Of a read of a list: its key, the elements of others, and whether own writes precede it. *)
  Definition list_read (t : tid) (i : positive) : option (key * option (list value) * bool) :=
    match M.find t (f_txns F) with
    | Some x => match find (fun r => match r with (j, _, _, _) => Pos.eqb i j end) (reads 1 [] (ops x)) with
      | Some (_, k, ListIs l, own) =>
        if M.mem k (f_lists F) then Some (k, shown k l own, match own with [] => false | _ => true end) else None
      | _ => None
      end
    | None => None
    end.
  Fixpoint later (p q : value -> bool) (l : list value) : bool :=
    match l with [] => false | e :: r => if p e then existsb q r else later p q r end.
  Definition lists_order (k : key) (mid : list value) (own : bool) (t a b : tid) (b_is_in : bool) : bool :=
    negb (same a b) &&
    (later (only_by k a) (only_by k b) mid ||
     (existsb (only_by k a) mid || own && same a t) && b_is_in &&
     existsb (fun g => negb (existsb (N.eqb g) mid)) (elements_in (f_txns F) k b)).
  Definition is_torn (k : key) (mid : list value) (t a : tid) : bool :=
    match filter (only_by k a) mid with
    | [] => false
    | m => same a t || match strip m (filter (only_by k a) (elements_in (f_txns F) k a)) with
                       | Some [] => false | _ => true end
    end.
End Lists.

Section Steps.
  Variables (h : history) (s : spec) (F : facts) (A : M.t atom).

  Definition excused (t : tid) (ins : list positive) : bool :=
    surely F t || existsb (fun x => match M.find x A with Some (Taken t') => same t t' | _ => false end) ins.

  Definition edge_entries (e : edge) : option (list entry * list positive) :=
    match e with
    | Known r a b ins =>
      let ok :=
        match r with
        | Init => same a T0 && negb (same b T0)
        | So => (same a T0 && negb (same b T0)) ||
                match M.find a (f_txns F), M.find b (f_txns F) with
                | Some x, Some y => certain x && same (session x) (session y) && (a <? b)%positive
                | _, _ => false end
        | Rt => (same a T0 && negb (same b T0)) ||
                negb (same a b) &&
                match M.find a (f_txns F), M.find b (f_txns F) with
                | Some x, Some y => certain x && match ended x, began y with
                  | Some e, Some s => (e <? s)%N | _, _ => false end
                | _, _ => false end
        | _ => false
        end in
      if ok && excused b ins then Some ([(r, 1%positive, a, b)], ins) else None
    | Read v =>
      match M.find v A with
      | Some (Src t i u) => match read_of F t i with
        | Some (k, _) => Some ([(Wr None, k, u, t)], [v]) | None => None end
      | _ => None
      end
    | Over v =>
      match M.find v A with
      | Some (Bef k a b) => Some ([(Ww None, k, a, b)], [v])
      | Some (Prec a b) => if has_order s then Some ([(Co, 1%positive, a, b)], [v]) else None
      | _ => None
      end
    | Anti v w =>
      match M.find v A with
      | Some (Src t i u) =>
        match read_of F t i, M.find w A with
        | Some (k, _), Some (Bef k' u' b) =>
          if same k k' && same u u' then
            Some ((Wr None, k, u, t) :: (Ww None, k, u, b) ::
              if same t b then [] else [(Rw None, k, t, b)], [v; w]) else None
        | Some (k, _), Some (Prec u' b) =>
          if has_order s && same u u' then Some ([(Wr None, k, u, t); (Co, 1%positive, u, b)], [v; w]) else None
        | _, _ => None
        end
      | _ => None
      end
    end.

  Fixpoint all_entries (l : list edge) : option (list entry * list positive) :=
    match l with
    | [] => Some ([], [])
    | e :: r => match edge_entries e, all_entries r with
      | Some (x, v), Some (y, w) => Some (x ++ y, v ++ w) | _, _ => None end
    end.

  Definition nodes_of (L : list entry) : list tid :=
    map fst (M.elements (set_of (T0 :: flat_map (fun e => match e with (_, _, a, b) => [a; b] end) L))).
  Definition keys_of (nodes : list tid) (L : list entry) : list key :=
    let accessed := flat_map (fun t => match M.find t (f_txns F) with
      Some x => map key_of (ops x) | None => [] end) nodes in
    filter (fun k => M.mem k (f_keys F)) (map fst (M.elements (set_of
      (accessed ++ map (fun e => match e with (_, k, _, _) => k end) L)))).

  Definition violates (L : list entry) (k : check) : bool :=
    let n : env := fun _ => 1%positive in
    let nodes := nodes_of L in
    let ev := eval F L nodes (keys_of nodes L) n in
    match k with
    | Acyclic e => has_loop (ev (Plus e))
    | Irreflexive e => has_loop (ev e)
    | Empty e => match ev e with [] => false | _ => true end
    | InOrder _ => false
    end.

  (** What the axioms put into the order of all transactions. *)
  Definition forced (L : list entry) : pairs :=
    let n : env := fun _ => 1%positive in
    let nodes := nodes_of L in
    flat_map (fun k => match k with
      | InOrder e => eval F L nodes (keys_of nodes L) n e | _ => [] end) (checks s).
  Fixpoint unordered (rounds : nat) (L : list entry) : bool :=
    let l := plus (tidy (forced L ++ eval F L [] [] (fun _ => 1%positive) (Rel Co))) in
    has_loop l ||
    existsb (fun k => violates L k) (checks s) ||
    match rounds with
    | O => false
    | S n => unordered n (map (fun p => (Co, 1%positive, fst p, snd p)) l ++
        filter (fun e => match e with (Co, _, _, _) => false | _ => true end) L)
    end.

  (** Steps that show an anomaly, or what a list shows, which only a level that judges reads forbids. *)
  Definition of_results (p : proof_step) : bool :=
    match p with
    | Own _ _ | Shows _ _ _ _ _ | Listed _ _ _ _ | Torn _ _ _ _ => true
    | _ => false
    end.
  Definition clause_of_step (p : proof_step) (db : M.t clause) : option clause :=
    match p with
    | Own t ins =>
      match M.find t (f_txns F) with
      | Some x => if existsb (fun r => match r with
                      | (_, _, ListIs l, w :: own) => match strip (w :: own) (rev l) with None => true | Some _ => false end
                      | (_, _, v, w :: _) => negb (matches v w)
                      | _ => false end)
                    (reads 1 [] (ops x)) && excused t ins then Some (map (fun x => (false, x)) ins) else None
      | None => None
      end
    | Choose t i vs ins =>
      match read_of F t i with
      | Some (k, v) =>
        if forallb (fun u => same u t || existsb (fun x => match M.find x A with
            | Some (Src t' i' u') => same t t' && same i i' && same u u' | _ => false end) vs) (candidates h F k v)
        then if excused t ins then Some (map (fun x => (true, x)) vs ++ map (fun x => (false, x)) ins) else None
        else None
      | None => None
      end
    | Cycle number rounds edges =>
      match all_entries edges with
      | Some (L, vs) =>
        if (if has_order s then unordered rounds L
            else match nth_error (checks s) number with Some k => violates L k | None => false end)
        then Some (map (fun x => (false, x)) vs) else None
      | None => None
      end
    | Line vs =>
      match all_entries (map Over vs) with
      | Some (L, _) =>
        let keys := map (fun e => match e with (_, k, _, _) => k end) L in
        let kind (k : key) := if existsb (fun e => match e with (Co, _, _, _) => true | _ => false end) L
          then if has_order s then eval F L [] [] (fun _ => k) (Rel Co) else [] else eval F L [] [] (fun _ => k) (Rel (Ww (Some 0))) in
        if existsb (fun k => has_loop (plus (tidy (kind k)))) keys
        then Some (map (fun x => (false, x)) vs) else None
      | None => None
      end
    | Either v w ins =>
      match M.find v A, M.find w A with
      | Some (Bef k a b), Some (Bef k' b' a') =>
        if same k k' && same a a' && same b b' && negb (same a b) && writes_it F a k && writes_it F b k &&
          excused a ins && excused b ins
        then Some ((true, v) :: (true, w) :: map (fun x => (false, x)) ins) else None
      | Some (Prec a b), Some (Prec b' a') =>
        if has_order s && same a a' && same b b' && negb (same a b) && excused a ins && excused b ins
        then Some ((true, v) :: (true, w) :: map (fun x => (false, x)) ins) else None
      | _, _ => None
      end
    | Inside v w =>
      match M.find v A, M.find w A with
      | Some (Src t i u), Some (Taken t') =>
        match read_of F t i with
        | Some _ => if negb (same t' T0) && (same t' t || same t' u) then Some [(false, v); (true, w)] else None
        | None => None
        end
      | Some (Bef k a b), Some (Taken t') =>
        if negb (same t' T0) && (same t' a || same t' b) then Some [(false, v); (true, w)] else None
      | Some (Prec a b), Some (Taken t') =>
        if has_order s && negb (same t' T0) && (same t' a || same t' b) then Some [(false, v); (true, w)] else None
      | _, _ => None
      end
    | Unlike v w =>
      match M.find v A, M.find w A with
      | Some (Src t i u), Some (Src t' i' u') =>
        if same t t' && same i i' && negb (same u u') then Some [(false, v); (false, w)] else None
      | _, _ => None
      end
    | First v ins =>
      match M.find v A with
      | Some (Bef k a b) => if same a T0 && negb (same b T0) && writes_it F b k && excused b ins
        then Some ((true, v) :: map (fun x => (false, x)) ins) else None
      | _ => None
      end
    | Shows t i e vs ins =>
      match list_read h F t i with
      | Some (k, Some mid, _) =>
        if existsb (N.eqb e) mid && excused t ins &&
          forallb (fun u => existsb (fun x => match M.find x A with
            | Some (Taken t') => same u t' | _ => false end) vs) (writers_of F k e)
        then Some (map (fun x => (true, x)) vs ++ map (fun x => (false, x)) ins) else None
      | _ => None
      end
    | Listed t i v ins =>
      match list_read h F t i, M.find v A with
      | Some (k, Some mid, own), Some (Bef k' a b) =>
        if same k k' && excused t ins && lists_order F k mid own t a b (excused b ins)
        then Some ((true, v) :: map (fun x => (false, x)) ins) else None
      | _, _ => None
      end
    | Torn t i a ins =>
      match list_read h F t i with
      | Some (k, mid, _) =>
        if match mid with Some mid => is_torn F k mid t a | None => true end && excused t ins
        then Some (map (fun x => (false, x)) ins) else None
      | None => None
      end
    | Rup c hints =>
      let start := fold_left (fun m l => M.add (snd l) (negb (fst l)) m) c (M.empty bool) in
      let fix go (hs : list positive) (m : M.t bool) : bool :=
        match hs with
        | [] => false
        | x :: r =>
          match M.find x db with
          | None => false
          | Some cl =>
            match filter (fun l => match M.find (snd l) m with
                | Some b => Bool.eqb b (fst l) | None => true end) cl with
            | [] => true
            | l :: ls => match ls with
              | [] => go r (M.add (snd l) (fst l) m)
              | _ => if forallb (fun y => Pos.eqb (snd l) (snd y) && Bool.eqb (fst l) (fst y)) ls
                     then go r (M.add (snd l) (fst l) m) else false
              end
            end
          end
        end in
      if go hints start then Some c else None
    end.

  Definition step_clause (p : proof_step) (db : M.t clause) : option clause :=
    if of_results p && negb (judges_reads s) then None else clause_of_step p db.

  Fixpoint run (l : list proof_step) (next : positive) (db : M.t clause) : bool :=
    match l with
    | [] => false
    | p :: r =>
      match step_clause p db with
      | None => false
      | Some [] => true
      | Some c => run r (Pos.succ next) (M.add next c db)
      end
    end.
End Steps.

Definition check_refutation (h : history) (s : spec) (r : refutation) : bool :=
  run h s (facts_of h (judges_reads s)) (atoms r) (steps r) 1 (M.empty _).

(** * Soundness *)

Lemma elements_set l t u : In (t, u) (M.elements (set_of l)) -> In t l.
Proof.
  intros H. apply M.elements_complete in H. apply set_of_in. rewrite M.mem_find, H. auto.
Qed.
Lemma tidy_sound l a b : In (a, b) (tidy l) -> In (a, b) l.
Proof.
  unfold tidy. rewrite in_flat_map. intros ([k m] & H & K). apply in_map_iff in K.
  destruct K as ([b' u] & [= -> <-] & K). apply elements_set in K. simpl in K.
  apply M.elements_complete in H. apply group_out. unfold get. rewrite H. exact K.
Qed.
Lemma compose_sound l m a b : In (a, b) (compose l m) -> exists x, In (a, x) l /\ In (x, b) m.
Proof.
  unfold compose. rewrite in_flat_map. intros ([k x] & H & K). apply in_map_iff in K.
  destruct K as (b' & [= -> ->] & K). exists x. split; auto. apply group_out. exact K.
Qed.
Lemma reach_sound (R : tid -> tid -> Prop) next a :
  (forall x y, In y (get x next) -> R x y) ->
  forall fuel work seen, (forall y, In y work -> clos_trans _ R a y) ->
  (forall y, M.mem y seen = true -> clos_trans _ R a y) ->
  forall y, M.mem y (reach next fuel work seen) = true -> clos_trans _ R a y.
Proof.
  intros N. induction fuel; intros work seen Hw Hs y; [simpl; auto|]. destruct work as [|x r]; [simpl; auto|].
  cbn [reach]. destruct (M.mem x seen) eqn:E.
  - apply IHfuel; auto. intros z Hz. apply Hw. right; auto.
  - apply IHfuel.
    + intros z Hz. apply in_app_or in Hz. destruct Hz as [Hz|Hz]; [|apply Hw; right; auto].
      apply t_trans with x; [apply Hw; left; auto|apply t_step; auto].
    + intros z Hz. rewrite M.mem_find in Hz. destruct (Pos.eq_dec z x).
      * subst. apply Hw. left; auto.
      * rewrite M.gso in Hz by auto. apply Hs. rewrite M.mem_find. auto.
Qed.
Lemma plus_sound l a b : In (a, b) (plus l) -> clos_trans _ (fun x y => In (x, y) l) a b.
Proof.
  unfold plus. rewrite in_flat_map. intros ([k m] & H & K). apply in_map_iff in K.
  destruct K as ([b' u] & [= -> <-] & K). apply M.elements_complete in H. apply M.elements_complete in K.
  eapply reach_sound with (next := adjacent l).
  - intros x y Hy. apply group_out. exact Hy.
  - cbn [snd] in *. intros y Hy. apply t_step. apply group_out. unfold get, adjacent in *. rewrite H. exact Hy.
  - intros y Hy. rewrite M.mem_find, M.gempty in Hy. discriminate.
  - rewrite M.mem_find. cbn [fst snd] in *. rewrite K. reflexivity.
Qed.
Lemma same_ok a b : same a b = true -> a = b. Proof. apply Pos.eqb_eq. Qed.
Lemma has_loop_sound l : has_loop l = true -> exists a, In (a, a) l.
Proof.
  unfold has_loop. rewrite existsb_exists. intros ([a b] & H & K). apply same_ok in K. simpl in K.
  subst. eauto.
Qed.
Lemma clos_mono {A} (R S : A -> A -> Prop) a b : (forall x y, R x y -> S x y) -> clos_trans _ R a b -> clos_trans _ S a b.
Proof. intros H. induction 1; [apply t_step; auto|eapply t_trans; eauto]. Qed.

Lemma before_trans {A} (l : list A) a b d : NoDup l -> before l a b -> before l b d -> before l a d.
Proof.
  intros N H K. apply before_nth in H. apply before_nth in K.
  destruct H as (p & q & L & Hp & Hq), K as (q' & r & L' & Hq' & Hr).
  assert (q = q').
  { rewrite NoDup_nth_error in N. apply N; [apply nth_error_Some|]; congruence. }
  subst. eapply nth_before with (p := p) (q := r); eauto. lia.
Qed.
Lemma before_loop {A} (l : list A) a : NoDup l -> ~ clos_trans _ (before l) a a.
Proof.
  intros N H. assert (K : forall x y, clos_trans _ (before l) x y -> before l x y).
  { induction 1; auto. eapply before_trans; eauto. }
  apply K in H. eapply before_distinct in H; eauto.
Qed.
Lemma before_total {A} (l : list A) a b : In a l -> In b l -> a <> b -> before l a b \/ before l b a.
Proof.
  induction l as [|z l]; simpl; [tauto|]. intros [->|Ha] [->|Hb] N; try congruence.
  - left. exists [a], l. simpl. auto.
  - right. exists [b], l. simpl. auto.
  - change (z :: l) with ([z] ++ l). destruct (IHl Ha Hb N); [left|right]; apply before_app_r; auto.
Qed.
