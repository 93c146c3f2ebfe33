(** The choice that a witness stands for, and that it is legal. *)
From Coq Require Import PArith NArith List Bool Relations FMapPositive Lia Sorted Permutation Orders.
From Coq Require Mergesort.
From Kernel Require Import Defs Witness.
Import ListNotations.

Record witness := Witness {
  w_taken : M.t unit;            (* of unknown outcome, and took effect *)
  w_source : M.t (M.t tid);
  w_order : M.t (list tid);
  w_total : list tid }.

Definition get {A} (k : positive) (m : M.t (list A)) : list A :=
  match M.find k m with Some l => l | None => [] end.
Definition choice_of (w : witness) : choice := {|
  took_effect := fun t => M.mem t (w_taken w);
  source := fun t i => match M.find t (w_source w) with
    | Some m => match M.find i m with Some u => u | None => T0 end
    | None => T0 end;
  order := fun k => get k (w_order w);
  total := w_total w |}.

(** * Numbers *)

Lemma numbered_ge {A} (l : list A) : forall i t x, In (t, x) (numbered i l) -> (i <= t)%positive.
Proof.
  induction l; simpl; intros; [tauto|]. destruct H as [[= -> ->]|H]; [lia|]. apply IHl in H. lia.
Qed.
Lemma numbered_unique {A} (l : list A) : forall i t x y,
  In (t, x) (numbered i l) -> In (t, y) (numbered i l) -> x = y.
Proof.
  induction l; simpl; intros i t x y; [tauto|]. intros [[= -> ->]|H] [E|K]; try congruence.
  - apply numbered_ge in K. lia.
  - injection E as -> ->. apply numbered_ge in H. lia.
  - eauto.
Qed.
Lemma numbered_before {A} (l : list A) : forall i a x b y, In (a, x) (numbered i l) -> In (b, y) (numbered i l) ->
  (a < b)%positive -> before (numbered i l) (a, x) (b, y).
Proof.
  induction l as [|z l]; simpl; intros i a x b y; [tauto|]. intros [[= -> ->]|H] [E|K] L.
  - injection E as -> ->. lia.
  - exists [(a, x)], (numbered (Pos.succ a) l). simpl. auto.
  - injection E as -> ->. apply numbered_ge in H. lia.
  - change ((i, z) :: numbered (Pos.succ i) l) with ([(i, z)] ++ numbered (Pos.succ i) l).
    apply before_app_r. eauto.
Qed.
Lemma before_filter {A} (p : A -> bool) l a b :
  before l a b -> p a = true -> p b = true -> before (filter p l) a b.
Proof.
  intros (l1 & l2 & -> & H1 & H2) Pa Pb. rewrite filter_app. exists (filter p l1), (filter p l2).
  rewrite !filter_In. auto.
Qed.
Lemma included_unique h c t x y : In (t, x) (included h c) -> In (t, y) (included h c) -> x = y.
Proof. unfold included. rewrite !filter_In. intros [H _] [K _]. eapply numbered_unique; eauto. Qed.
Lemma included_before h c a x b y : In (a, x) (included h c) -> In (b, y) (included h c) ->
  (a < b)%positive -> before (included h c) (a, x) (b, y).
Proof.
  unfold included. rewrite !filter_In. intros [H H'] [K K'] L.
  apply before_filter; auto. apply numbered_before; auto.
Qed.
Lemma included_not_T0 h c t x : In (t, x) (included h c) -> t <> T0.
Proof.
  unfold included. rewrite filter_In. intros [H _]. apply numbered_ge in H. unfold T0. lia.
Qed.

(** * Maps *)

Section Table.
  Context {A B : Type}.
  Variable F : A -> B.
  Definition table (l : list (positive * A)) : M.t B :=
    fold_left (fun m p => M.add (fst p) (F (snd p)) m) l (M.empty B).
  Lemma table_find_ l : forall m t y, M.find t (fold_left (fun m p => M.add (fst p) (F (snd p)) m) l m) = Some y ->
    M.find t m = Some y \/ exists x, In (t, x) l /\ y = F x.
  Proof.
    induction l; simpl; intros m t y H; auto. apply IHl in H. destruct H as [H|(x & H & E)]; [|eauto].
    destruct a as [t' x]. simpl in H. destruct (Pos.eq_dec t t').
    - subst. rewrite M.gss in H. injection H as <-. right. exists x. auto.
    - rewrite M.gso in H by auto. auto.
  Qed.
  Lemma table_find l t y : M.find t (table l) = Some y -> exists x, In (t, x) l /\ y = F x.
  Proof.
    intros H. apply table_find_ in H. destruct H as [H|H]; auto. rewrite M.gempty in H. discriminate.
  Qed.
  Lemma table_keeps l : forall m t y, M.find t m = Some y ->
    exists y', M.find t (fold_left (fun m p => M.add (fst p) (F (snd p)) m) l m) = Some y'.
  Proof.
    induction l; simpl; intros; eauto. destruct (Pos.eq_dec t (fst a)).
    - subst. eapply IHl. apply M.gss.
    - eapply IHl. rewrite M.gso; eauto.
  Qed.
  Lemma table_has_ l : forall m t x, In (t, x) l ->
    exists y, M.find t (fold_left (fun m p => M.add (fst p) (F (snd p)) m) l m) = Some y.
  Proof.
    induction l; simpl; intros m t x H; [tauto|]. destruct H as [->|H]; eauto.
    eapply table_keeps. apply M.gss.
  Qed.
  Lemma table_in l t x : In (t, x) l -> (forall y z, In (t, y) l -> In (t, z) l -> y = z) ->
    M.find t (table l) = Some (F x).
  Proof.
    intros H U. destruct (table_has_ l (M.empty B) _ _ H) as (y & E). unfold table. rewrite E.
    apply table_find in E. destruct E as (x' & K & ->). f_equal. f_equal. eauto.
  Qed.
End Table.

Definition group {A} (l : list (positive * A)) : M.t (list A) :=
  fold_left (fun m p => M.add (fst p) (snd p :: get (fst p) m) m) l (M.empty _).
Lemma group_keeps {A} (l : list (positive * A)) : forall m k a, In a (get k m) ->
  In a (get k (fold_left (fun m p => M.add (fst p) (snd p :: get (fst p) m) m) l m)).
Proof.
  induction l as [|[k' a'] l]; simpl; intros m k a H; auto. apply IHl. unfold get at 1.
  destruct (Pos.eq_dec k k'); [subst|]; rewrite ?M.gss, ?M.gso by auto; simpl; auto.
Qed.
Lemma group_in_ {A} (l : list (positive * A)) : forall m k a, In (k, a) l ->
  In a (get k (fold_left (fun m p => M.add (fst p) (snd p :: get (fst p) m) m) l m)).
Proof.
  induction l as [|[k' a'] l]; simpl; intros m k a H; [tauto|]. destruct H as [[= -> ->]|H]; auto.
  apply group_keeps. unfold get at 1. rewrite M.gss. simpl; auto.
Qed.
Lemma group_in {A} (l : list (positive * A)) k a : In (k, a) l -> In a (get k (group l)).
Proof. apply group_in_. Qed.

Definition set_of (l : list positive) : M.t unit := fold_left (fun m t => M.add t tt m) l (M.empty _).
Lemma set_of_in l t : M.mem t (set_of l) = true -> In t l.
Proof.
  intros H. apply covered_in in H. destruct H; auto. rewrite M.mem_find, M.gempty in H. discriminate.
Qed.
Lemma set_of_has l : forall m t, In t l \/ M.mem t m = true ->
  M.mem t (fold_left (fun m t => M.add t tt m) l m) = true.
Proof.
  induction l; simpl; intros m t H; [tauto|]. apply IHl. destruct H as [[->|H]|H]; auto.
  - right. rewrite M.mem_find, M.gss. auto.
  - right. rewrite M.mem_find in *. destruct (Pos.eq_dec t a); [subst; rewrite M.gss|rewrite M.gso]; auto.
Qed.

Fixpoint distinct (seen : M.t unit) (l : list positive) : bool :=
  match l with
  | [] => true
  | t :: r => negb (M.mem t seen) && distinct (M.add t tt seen) r
  end.
Lemma distinct_ok l : forall seen, distinct seen l = true ->
  NoDup l /\ forall t, In t l -> M.mem t seen = false.
Proof.
  induction l; simpl; intros seen H; [split; [constructor|tauto]|].
  apply andb_true_iff in H. destruct H as [H1 H2]. apply IHl in H2. destruct H2 as [N D].
  apply negb_true_iff in H1. split.
  - constructor; auto. intros K. apply D in K. rewrite M.mem_find, M.gss in K. discriminate.
  - intros t [->|K]; auto. apply D in K. rewrite M.mem_find in *.
    destruct (Pos.eq_dec t a); [subst; rewrite M.gss in K; discriminate|rewrite M.gso in K; auto].
Qed.

Lemma before_distinct {A} (l : list A) a b : NoDup l -> before l a b -> a <> b.
Proof.
  intros N (l1 & l2 & -> & H1 & H2) <-. induction l1; simpl in *; [tauto|]. inversion N; subst.
  destruct H1 as [->|H1]; auto. apply H3. apply in_or_app. auto.
Qed.

(** * Writes *)

Lemma written_app k l m : written k (l ++ m) = written k l ++ written k m.
Proof.
  induction l as [|[k' v|k' r] l IH]; simpl; auto. rewrite IH. destruct (Pos.eqb k k'); auto.
Qed.
Lemma written_rev k l : written k (rev l) = rev (written k l).
Proof.
  induction l as [|[k' v|k' r] l IH]; simpl; auto; rewrite written_app, IH; simpl; [|apply app_nil_r].
  destruct (Pos.eqb k k'); simpl; auto using app_nil_r.
Qed.

Definition last_writes (l : list op) : M.t value :=
  fold_left (fun m o => match o with W k v => M.add k v m | R _ _ => m end) l (M.empty _).
Lemma last_writes_ok l k : M.find k (last_writes l) = last_write k (rev l).
Proof.
  unfold last_writes, last_write. induction l using rev_ind; simpl; [apply M.gempty|].
  rewrite fold_left_app, rev_app_distr. simpl. destruct x; simpl; auto.
  destruct (Pos.eqb_spec k k0); [subst; apply M.gss|rewrite M.gso; auto].
Qed.

(** * Lists *)

(** What remains of a list after its beginning [m]. *)
Fixpoint strip (m l : list value) : option (list value) :=
  match m, l with
  | [], _ => Some l
  | x :: m, y :: l => if N.eqb x y then strip m l else None
  | _, [] => None
  end.
Lemma strip_ok m : forall l r, strip m l = Some r -> l = m ++ r.
Proof.
  induction m as [|x m IH]; simpl; intros l r H; [congruence|]. destruct l as [|y l]; try discriminate.
  destruct (N.eqb_spec x y); try discriminate. subst. f_equal. auto.
Qed.
Lemma last_cons {A} (l : list A) : forall x d, last (x :: l) d = last l x.
Proof.
  induction l as [|y l IH]; intros x d; [reflexivity|]. change (last (x :: y :: l) d) with (last (y :: l) d).
  rewrite !IH. reflexivity.
Qed.

Section Prefixes.
  Variable elements : tid -> list value.
  (** The list [l] is that of the versions up to [u], and [t] is none of their writers. *)
  Fixpoint up_to (u t : tid) (versions : list tid) (here : tid) (l : list value) : bool :=
    if Pos.eqb here u then match l with [] => true | _ => false end
    else match versions with
      | [] => false
      | v :: r => negb (Pos.eqb v t) && match strip (elements v) l with Some l => up_to u t r v l | None => false end
      end.
  Lemma up_to_ok u t : forall versions here l, up_to u t versions here l = true ->
    exists l1 l2, versions = l1 ++ l2 /\ u = last l1 here /\ ~ In t l1 /\ l = flat_map elements l1.
  Proof.
    assert (E : forall versions here l, Pos.eqb here u = true -> match l with [] => true | _ :: _ => false end = true ->
      exists l1 l2, versions = l1 ++ l2 /\ u = last l1 here /\ ~ In t l1 /\ l = flat_map elements l1).
    { intros versions here l H K. apply Pos.eqb_eq in H. destruct l; try discriminate.
      exists [], versions. simpl. auto. }
    induction versions as [|v r IH]; cbn [up_to]; intros here l; destruct (Pos.eqb here u) eqn:Q; auto;
      try discriminate.
    rewrite andb_true_iff. intros [N H]. destruct (strip (elements v) l) as [l'|] eqn:S; try discriminate.
    apply strip_ok in S. apply negb_true_iff, Pos.eqb_neq in N. apply IH in H.
    destruct H as (l1 & l2 & -> & E1 & E2 & E3). exists (v :: l1), l2. rewrite last_cons. subst.
    repeat split; auto. intros [K|K]; auto.
  Qed.

  (** The list [l] is that of the versions before [t]'s, with [own] at its end. *)
  Fixpoint just_before (t : tid) (own : list value) (versions : list tid) (l : list value) : bool :=
    match versions with
    | [] => false
    | v :: r =>
      if Pos.eqb v t then match strip own l with Some [] => true | _ => false end
      else match strip (elements v) l with Some l => just_before t own r l | None => false end
    end.
  Lemma just_before_ok t own : forall versions l, just_before t own versions l = true ->
    exists l1 l2, versions = l1 ++ t :: l2 /\ l = flat_map elements l1 ++ own.
  Proof.
    induction versions as [|v r IH]; cbn [just_before]; intros l H; try discriminate.
    destruct (Pos.eqb_spec v t).
    - destruct (strip own l) as [[|]|] eqn:S; try discriminate. apply strip_ok in S. rewrite app_nil_r in S.
      subst. exists [], r. auto.
    - destruct (strip (elements v) l) as [l'|] eqn:S; try discriminate. apply strip_ok in S. apply IH in H.
      destruct H as (l1 & l2 & -> & ->). exists (v :: l1), l2. rewrite S. simpl. rewrite app_assoc. auto.
  Qed.
End Prefixes.

Definition elements_in (txns : M.t txn) (k : key) (u : tid) : list value :=
  match M.find u txns with Some x => written k (ops x) | None => [] end.
Lemma appended_is h c k l :
  appended h c k l = flat_map (elements_in (table (fun x => x) (included h c)) k) l.
Proof.
  unfold appended. induction l as [|u l IH]; simpl; auto. rewrite IH. f_equal. unfold elements_in.
  destruct (find (fun p => Pos.eqb (fst p) u) (included h c)) as [[u' x]|] eqn:E.
  - apply find_some in E. destruct E as [H K]. apply Pos.eqb_eq in K. simpl in K. subst u'.
    rewrite (table_in (fun x => x) _ _ _ H); auto. intros. eapply included_unique; eauto.
  - destruct (M.find u (table (fun x => x) (included h c))) as [x|] eqn:F; auto.
    apply table_find in F. destruct F as (y & H & _). eapply find_none in E; [|exact H]. simpl in E.
    rewrite Pos.eqb_refl in E. discriminate.
Qed.

(** * What a read may have read *)

Definition possible (h : history) : list (tid * txn) :=
  filter (fun p => match status (snd p) with Aborted => false | _ => true end) (numbered 2 (txns h)).
Definition versions (inc : list (tid * txn)) : list (key * (value * tid)) :=
  flat_map (fun p => map (fun kv => (fst kv, (snd kv, fst p)))
    (M.elements (last_writes (ops (snd p))))) inc.
Lemma group_out_ {A} (l : list (positive * A)) : forall m k a,
  In a (get k (fold_left (fun m p => M.add (fst p) (snd p :: get (fst p) m) m) l m)) ->
  In (k, a) l \/ In a (get k m).
Proof.
  induction l as [|[k' a'] l]; simpl; intros m k a H; auto. apply IHl in H. destruct H as [H|H]; auto.
  unfold get at 1 in H. destruct (Pos.eq_dec k k'); [subst; rewrite M.gss in H|rewrite M.gso in H; auto].
  destruct H as [->|H]; auto.
Qed.
Lemma group_out {A} (l : list (positive * A)) k a : In a (get k (group l)) -> In (k, a) l.
Proof.
  intros H. apply group_out_ in H. destruct H as [H|H]; auto. unfold get in H. rewrite M.gempty in H. destruct H.
Qed.

Definition explicableb (h : history) (versions : M.t (list (value * tid))) (t : tid) (k : key) (r : result) : bool :=
  match r with
  | ListIs _ => true
  | _ => existsb (matches r) (initial h k) ||
      existsb (fun p => negb (Pos.eqb (snd p) t) && matches r (fst p)) (get k versions)
  end.
Definition versions_of (h : history) : M.t (list (value * tid)) := group (versions (possible h)).
Lemma versions_of_ok h k v u : In (v, u) (get k (versions_of h)) <->
  exists x, In (u, x) (numbered 2 (txns h)) /\ status x <> Aborted /\ last_write k (rev (ops x)) = Some v.
Proof.
  assert (P : forall x, In (u, x) (possible h) <-> In (u, x) (numbered 2 (txns h)) /\ status x <> Aborted).
  { intros x. unfold possible. rewrite filter_In. cbn [snd]. destruct (status x); intuition congruence. }
  split.
  - intros H. apply group_out in H. unfold versions in H. apply in_flat_map in H. destruct H as ([u' x] & H & K).
    apply in_map_iff in K. destruct K as ([k' v'] & E & K). cbn [fst snd] in *. injection E as -> -> ->.
    apply P in H. apply M.elements_complete in K. rewrite last_writes_ok in K. exists x. tauto.
  - intros (x & H & S & K). apply group_in. unfold versions. apply in_flat_map. exists (u, x).
    split; [apply P; auto|]. cbn [fst snd]. apply in_map_iff. exists (k, v). split; auto.
    apply M.elements_correct. rewrite last_writes_ok. exact K.
Qed.
Lemma explicableb_ok h t k r : t <> T0 -> explicableb h (versions_of h) t k r = true <-> explicable h t k r.
Proof.
  intros N. assert (Q : existsb (matches r) (initial h k) ||
      existsb (fun p => negb (Pos.eqb (snd p) t) && matches r (fst p)) (get k (versions_of h)) = true <->
    exists u v, u <> t /\ matches r v = true /\ ((u = T0 /\ In v (initial h k)) \/
      exists x, In (u, x) (numbered 2 (txns h)) /\ status x <> Aborted /\ last_write k (rev (ops x)) = Some v)).
  { rewrite orb_true_iff, !existsb_exists. split.
    - intros [(v & H & K)|([v u] & H & K)].
      + exists T0, v. auto.
      + apply versions_of_ok in H. apply andb_true_iff in K. destruct K as [K1 K2].
        apply negb_true_iff, Pos.eqb_neq in K1. exists u, v. auto.
    - intros (u & v & D & M & [[-> H]|H]); [left; eauto|right]. exists (v, u). cbn [fst snd].
      split; [apply versions_of_ok; exact H|]. apply andb_true_iff. split; auto. apply negb_true_iff, Pos.eqb_neq. auto. }
  destruct r; try exact Q. cbn. tauto.
Qed.
(** What a read that a choice explains was explained by. *)
Lemma explained_explicable h c t k r u : u <> t -> explained h c t k r u -> explicable h t k r.
Proof.
  intros D X. assert (Q : (exists v, wrote h c u k v /\ matches r v = true) ->
    exists u v, u <> t /\ matches r v = true /\ ((u = T0 /\ In v (initial h k)) \/
      exists x, In (u, x) (numbered 2 (txns h)) /\ status x <> Aborted /\ last_write k (rev (ops x)) = Some v)).
  { intros (v & [H|(x & H & K)] & F); exists u, v; (split; [exact D|]); (split; [exact F|]); [left; exact H|right].
    exists x. unfold included in H. apply filter_In in H. destruct H as [H S]. split; auto. split; auto.
    unfold counts in S. cbn [fst snd] in S. intros E. rewrite E in S. discriminate. }
  destruct r; try exact (Q X). exact I.
Qed.

Section Legal.
  Variable h : history.
  Variable w : witness.
  Variable judged : bool.
  Let c := choice_of w.
  Let inc := included h c.
  Let final : M.t (M.t value) := table (fun x => last_writes (ops x)) inc.
  Let all : M.t txn := table (fun x => x) inc.

  Definition wroteb (final : M.t (M.t value)) (u : tid) (k : key) (r : result) : bool :=
    if Pos.eqb u T0 then existsb (matches r) (initial h k)
    else match M.find u final with
         | Some m => match M.find k m with Some w => matches r w | None => false end
         | None => false
         end.
  Lemma wroteb_ok u k v : wroteb final u k v = true -> exists w, wrote h c u k w /\ matches v w = true.
  Proof.
    unfold wroteb, wrote. destruct (Pos.eqb_spec u T0).
    - intros H. apply existsb_exists in H. destruct H as (x & H & K). eauto.
    - destruct (M.find u final) as [m|] eqn:E; try discriminate. apply table_find in E.
      destruct E as (x & H & ->). rewrite last_writes_ok.
      destruct (last_write k (rev (ops x))) eqn:L; try discriminate. intros K.
      eexists. split; [right; eauto|exact K].
  Qed.

  (** Whether a choice must explain a read; where reads are judged, it must explain all. *)
  Definition sourced (t : tid) (k : key) (r : result) (versions : M.t (list (value * tid))) : bool :=
    judged || explicableb h versions t k r.
  Definition looked_up : M.t (list (value * tid)) := if judged then M.empty _ else versions_of h.
  Lemma sourced_ok t k r : t <> T0 -> judged = true \/ explicable h t k r -> sourced t k r looked_up = true.
  Proof.
    unfold sourced, looked_up. destruct judged; auto. intros N [H|H]; [discriminate|].
    apply explicableb_ok; auto.
  Qed.

  Definition read_ok (versions : M.t (list (value * tid))) (final : M.t (M.t value)) (all : M.t txn) (t : tid) (i : positive) (k : key) (r : result)
      (own : list value) : bool :=
    match own with
    | v :: _ =>
      negb judged || match r with
      | ListIs l => match strip (beginning h k) l with
        | Some l => just_before (elements_in all k) t (rev own) (order c k) l | None => false end
      | _ => matches r v
      end
    | [] =>
      let u := source c t i in
      negb (sourced t k r versions) || negb (Pos.eqb u t) &&
      match r with
      | ListIs l => match strip (beginning h k) l with
        | Some l => up_to (elements_in all k) u t (order c k) T0 l | None => false end
      | _ => wroteb final u k r
      end
    end.
  Definition reads_ok (versions : M.t (list (value * tid))) (inc : list (tid * txn)) (final : M.t (M.t value)) (all : M.t txn) : bool :=
    forallb (fun p => forallb (fun r => match r with (i, k, r, own) => read_ok versions final all (fst p) i k r own end)
      (reads 1 [] (ops (snd p)))) inc.

  Lemma read_ok_external t i k r : t <> T0 -> judged = true \/ explicable h t k r ->
    read_ok looked_up final all t i k r [] = true -> source c t i <> t /\ explained h c t k r (source c t i).
  Proof.
    intros T Src. unfold read_ok. rewrite (sourced_ok _ _ _ T Src). cbn [negb orb]. clear Src.
    rewrite andb_true_iff. intros [N H]. apply negb_true_iff, Pos.eqb_neq in N. split; auto.
    destruct r as [v|l|l|l]; try (apply wroteb_ok in H; exact H). cbn [explained].
    destruct (strip (beginning h k) l) as [l'|] eqn:S; try discriminate. apply strip_ok in S. apply up_to_ok in H.
    destruct H as (l1 & l2 & E1 & E2 & E3 & E4). exists l1, l2. repeat split; auto.
    rewrite S, E4, appended_is. reflexivity.
  Qed.
  Lemma read_ok_own t i k r v own : judged = true -> read_ok looked_up final all t i k r (v :: own) = true ->
    own_explained h c t k r (v :: own).
  Proof.
    unfold read_ok. intros ->. cbn [negb orb]. destruct r as [x|l|l|l]; cbn [own_explained hd_error]; try (intros H; eauto; fail).
    destruct (strip (beginning h k) l) as [l'|] eqn:S; try discriminate. apply strip_ok in S. intros H.
    apply just_before_ok in H. destruct H as (l1 & l2 & E1 & E2). exists l1, l2. split; auto.
    rewrite S, E2, appended_is, app_assoc. reflexivity.
  Qed.

  Definition orders_ok (inc : list (tid * txn)) (final : M.t (M.t value)) : bool :=
    forallb (fun p =>
      distinct (M.add T0 tt (M.empty _)) (snd p) &&
      forallb (fun u => match M.find u final with Some m => M.mem (fst p) m | None => false end) (snd p))
      (M.elements (w_order w)) &&
    let sets := M.map set_of (w_order w) in
    forallb (fun p => forallb (fun kv =>
      match M.find (fst kv) sets with Some s => M.mem (fst p) s | None => false end)
      (M.elements (last_writes (ops (snd p))))) inc.

  Lemma legal_ok : reads_ok looked_up inc final all = true -> orders_ok inc final = true -> legal judged h c.
  Proof.
    intros HR HO. unfold reads_ok in HR. rewrite forallb_forall in HR.
    assert (HR' : forall t x i k v own, In (t, x) inc -> In (i, k, v, own) (reads 1 [] (ops x)) ->
      read_ok looked_up final all t i k v own = true).
    { intros t x i k v own H K. apply HR in H. simpl in H. rewrite forallb_forall in H.
      apply H in K. exact K. }
    clear HR. unfold orders_ok in HO. apply andb_true_iff in HO. destruct HO as [HO1 HO2].
    rewrite forallb_forall in HO1, HO2.
    assert (HD : forall k, NoDup (T0 :: order c k)).
    { intros k. simpl. unfold get. destruct (M.find k (w_order w)) eqn:E; [|constructor; auto; constructor].
      apply M.elements_correct in E. apply HO1 in E. cbn [fst snd] in E. apply andb_true_iff in E.
      destruct E as [E _]. apply distinct_ok in E. destruct E as [N D]. constructor; auto.
      intros K. apply D in K. rewrite M.mem_find, M.gss in K. discriminate. }
    split; [|split; [|split; [exact HD|]]].
    - intros t i k r (x & H & K) S. apply read_ok_external; [eapply included_not_T0; eauto|exact S|]. eapply HR'; eauto.
    - intros t x i k r v own Q H K. eapply read_ok_own; eauto.
    - intros k u. split.
      + intros [<-|H]; [left; auto|]. simpl in H. unfold get in H.
        destruct (M.find k (w_order w)) eqn:E; [|destruct H]. apply M.elements_correct in E.
        apply HO1 in E. apply andb_true_iff in E. destruct E as [_ E]. rewrite forallb_forall in E.
        apply E in H. simpl in H. destruct (M.find u final) as [m|] eqn:F; try discriminate.
        apply table_find in F. destruct F as (x & F & ->). rewrite M.mem_find, last_writes_ok in H.
        destruct (last_write k (rev (ops x))) eqn:L; try discriminate. right. eauto.
      + intros [->|(x & v & H & L)]; [simpl; auto|]. right. pose proof H as H'.
        apply HO2 in H. simpl in H. rewrite forallb_forall in H. rewrite <- last_writes_ok in L.
        apply M.elements_correct in L. apply H in L. simpl in L.
        simpl. unfold get.
        destruct (M.find k (M.map set_of (w_order w))) eqn:E; try discriminate.
        unfold M.map in E. rewrite M.gmapi in E.
        destruct (@M.find (list tid) k (w_order w)) as [l|] eqn:E2.
        * assert (E3 : option_map set_of (Some l) = Some t) by (rewrite <- E; f_equal; symmetry; exact E2).
          injection E3 as E3. apply set_of_in. rewrite E3. exact L.
        * assert (E3 : option_map set_of None = Some t) by (rewrite <- E; f_equal; symmetry; exact E2). discriminate.
  Qed.
End Legal.

Section Inside.
  Context {judged : bool}.
  Variables (h : history) (c : choice).
  Hypothesis L : legal judged h c.
  Lemma writer_inside u k : writer h c u k -> is_in h c u.
  Proof. intros [->|(x & v & H & _)]; [left; auto|right; eauto]. Qed.
  Lemma wrote_writer u k v : wrote h c u k v -> writer h c u k.
  Proof. intros [[-> _]|(x & H & K)]; [left; auto|right; eauto]. Qed.
  Lemma listed_inside u k : In u (T0 :: order c k) -> is_in h c u.
  Proof. intros H. destruct L as (_ & _ & _ & O). apply O in H. eapply writer_inside; eauto. Qed.
  Lemma last_in (l : list tid) d : In (last l d) (d :: l).
  Proof.
    revert d. induction l as [|x l IH]; intros d; [left; auto|]. rewrite last_cons. right. apply IH.
  Qed.
  Lemma explained_writer t k r u : explained h c t k r u -> In u (T0 :: order c k).
  Proof.
    destruct L as (_ & _ & _ & O).
    destruct r as [v|l|l|l]; cbn [explained]; try (intros (w & H & _); apply O; apply (wrote_writer _ _ _ H)).
    intros (l1 & l2 & -> & -> & _). destruct (last_in l1 T0) as [H|H]; [left; auto|right].
    apply in_or_app. auto.
  Qed.
  Lemma wr_inside k a b : wr h c k a b -> is_in h c a /\ is_in h c b /\ a <> b.
  Proof.
    intros (i & v & E & S & <-). destruct L as (L1 & _). destruct (L1 _ _ _ _ E (or_intror S)) as (N & X).
    destruct E as (x & H & K). split; [|split; auto; right; eauto].
    eapply listed_inside, explained_writer; eauto.
  Qed.
  Lemma ww_inside k a b : ww c k a b -> is_in h c a /\ is_in h c b /\ a <> b.
  Proof.
    intros B. destruct L as (_ & _ & N & O). pose proof (before_distinct _ _ _ (N k) B).
    destruct B as (l1 & l2 & E & H1 & H2).
    assert (Ha : In a (T0 :: order c k)) by (rewrite E; apply in_or_app; auto).
    assert (Hb : In b (T0 :: order c k)) by (rewrite E; apply in_or_app; auto).
    apply listed_inside in Ha. apply listed_inside in Hb. auto.
  Qed.
  Lemma so_inside a b : so h c a b -> is_in h c a /\ is_in h c b.
  Proof. intros (x & y & ? & ? & _). split; right; eauto. Qed.
  Lemma rt_inside a b : rt h c a b -> is_in h c a /\ is_in h c b.
  Proof. intros (_ & x & y & e & s & ? & ? & _). split; right; eauto. Qed.
  Lemma init_inside a b : init h c a b -> is_in h c a /\ is_in h c b.
  Proof. intros (-> & _ & H). split; auto. left; auto. Qed.
End Inside.
