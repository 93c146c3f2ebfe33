(** Soundness of the checker of refutations. *)
From Coq Require Import PArith NArith List Bool Relations FMapPositive Lia.
From Kernel Require Import Defs Witness Legal CheckWitness Refute.
Import ListNotations.

Fixpoint beforeb (l : list tid) (a b : tid) : bool :=
  match l with
  | [] => false
  | x :: r => (Pos.eqb x a && existsb (Pos.eqb b) r) || beforeb r a b
  end.
Lemma beforeb_ok l a b : beforeb l a b = true <-> before l a b.
Proof.
  induction l as [|x l]; simpl.
  - split; [discriminate|]. intros (l1 & l2 & E & H1 & H2). symmetry in E. apply app_eq_nil in E.
    destruct E as [-> ->]. destruct H1.
  - rewrite orb_true_iff, andb_true_iff, IHl, existsb_exists. split.
    + intros [[H (y & Hy & E)]|H].
      * apply Pos.eqb_eq in H. apply Pos.eqb_eq in E. subst. exists [a], l. simpl. auto.
      * change (x :: l) with ([x] ++ l). apply before_app_r. auto.
    + intros (l1 & l2 & E & H1 & H2). destruct l1 as [|z l1]; [destruct H1|].
      injection E as -> ->. destruct H1 as [->|H1].
      * left. split; [apply Pos.eqb_refl|]. exists b. split; [apply in_or_app; auto|apply Pos.eqb_refl].
      * right. exists l1, l2. auto.
Qed.

Section Facts.
  Variables (h : history) (c : choice).
  Let F := facts_of h.

  Lemma possible_of t x : In (t, x) (included h c) -> In (t, x) (possible h).
  Proof.
    unfold included, possible. rewrite !filter_In. unfold counts. cbn [fst snd]. intros [H K]. split; auto.
    destruct (status x); auto.
  Qed.
  Lemma possible_unique t x y : In (t, x) (possible h) -> In (t, y) (possible h) -> x = y.
  Proof. unfold possible. rewrite !filter_In. intros [H _] [K _]. eapply numbered_unique; eauto. Qed.
  Lemma certain_in t x : In (t, x) (possible h) -> certain x = true -> In (t, x) (included h c).
  Proof.
    unfold included, possible, certain, counts. rewrite !filter_In. cbn [fst snd]. intros [H _] K. split; auto.
    destruct (status x); auto; discriminate.
  Qed.
  (** Who counts is the one of that number. *)
  Lemma in_is t x : is_in h c t -> t <> T0 -> In (t, x) (possible h) -> In (t, x) (included h c).
  Proof.
    intros [->|(y & H)] N K; [congruence|]. rewrite (possible_unique _ _ _ K (possible_of _ _ H)). exact H.
  Qed.
  Lemma possible_not_T0 t x : In (t, x) (possible h) -> t <> T0.
  Proof. unfold possible. rewrite filter_In. intros [H _]. apply numbered_ge in H. unfold T0. lia. Qed.

  Lemma txn_ok t x : M.find t (f_txns F) = Some x -> In (t, x) (possible h).
  Proof. intros H. apply table_find in H. destruct H as (y & H & ->). exact H. Qed.
  Lemma surely_ok t : surely F t = true -> is_in h c t.
  Proof.
    unfold surely. rewrite orb_true_iff. intros [H|H].
    - left. apply same_ok; auto.
    - destruct (M.find t (f_txns F)) as [x|] eqn:E; try discriminate.
      right. exists x. apply certain_in; auto. apply txn_ok; auto.
  Qed.
  Lemma writes_find t m : is_in h c t -> M.find t (f_writes F) = Some m ->
    forall k v, M.find k m = Some v -> wrote h c t k v.
  Proof.
    intros I H k v K. apply table_find in H. destruct H as (x & H & ->). rewrite last_writes_ok in K.
    right. exists x. split; auto. apply in_is; auto. eapply possible_not_T0; eauto.
  Qed.
  Lemma writes_it_ok t k : is_in h c t -> writes_it F t k = true -> exists v, wrote h c t k v.
  Proof.
    unfold writes_it. rewrite orb_true_iff. intros I [H|H].
    - apply same_ok in H. subst. exists (initial h k). left; auto.
    - destruct (M.find t (f_writes F)) as [m|] eqn:E; try discriminate. rewrite M.mem_find in H.
      destruct (M.find k m) eqn:K; try discriminate. exists v. eapply writes_find; eauto.
  Qed.
  Lemma reads_find t m i k v : is_in h c t -> M.find t (f_reads F) = Some m -> M.find i m = Some (k, v) ->
    external h c t i k v.
  Proof.
    intros I H K. apply table_find in H. destruct H as (x & H & ->). apply table_find in K.
    destruct K as (p & K & <-). exists x. split.
    - apply in_is; auto. eapply possible_not_T0; eauto.
    - unfold external_reads in K.
      apply in_flat_map in K. destruct K as ([[[i' k'] v'] own] & K & K'). destruct own; [destruct K'|].
      destruct K' as [[= -> -> ->]|[]]. exact K.
  Qed.
  Lemma read_of_ok t i k v : is_in h c t -> read_of F t i = Some (k, v) -> external h c t i k v.
  Proof.
    unfold read_of. destruct (M.find t (f_reads F)) eqn:E; try discriminate. intros. eapply reads_find; eauto.
  Qed.
  Lemma writers_have u k v : wrote h c u k v -> (u = T0 /\ v = initial h k) \/
    exists m, M.find k (f_writers F) = Some m /\ In u (get (value_key v) m).
  Proof.
    intros [H|(x & H & L)]; [auto|right]. apply possible_of in H.
    assert (W : In (k, (value_key v, u)) (written (possible h))).
    { unfold written. apply in_flat_map. exists (u, x). split; auto. cbn [fst snd].
      apply in_map_iff. exists (k, v). split; auto. apply M.elements_correct. rewrite last_writes_ok. exact L. }
    apply group_in in W. unfold get in W. unfold F, facts_of. cbn [f_writers]. unfold M.map. rewrite M.gmapi.
    destruct (M.find k (group (written (possible h)))) eqn:E; [|destruct W]. simpl.
    eexists. split; [reflexivity|]. apply group_in. exact W.
  Qed.
  Lemma versions_have u k v : wrote h c u k v -> (u = T0 /\ v = initial h k) \/ In (v, u) (get k (f_versions F)).
  Proof.
    intros [H|(x & H & L)]; [auto|right]. apply possible_of in H. apply group_in. unfold versions.
    apply in_flat_map. exists (u, x). split; auto. cbn [fst snd].
    apply in_map_iff. exists (k, v). split; auto. apply M.elements_correct. rewrite last_writes_ok. exact L.
  Qed.
  Lemma keys_have k : M.mem k (f_keys F) = true -> In k (keys h).
  Proof. apply set_of_in. Qed.
End Facts.

Section Sound.
  Variables (h : history) (s : spec) (c : choice).
  Let F := facts_of h.
  Hypothesis L : legal h c.
  Hypothesis O : has_order s = true -> ordered h c.
  Hypothesis C : forall k, In k (checks s) -> holds h c k.

  Definition entry_true (e : entry) : Prop :=
    match e with (q, k, a, b) =>
      match q with
      | So => so h c a b \/ init h c a b
      | Rt => rt h c a b \/ init h c a b
      | Init => init h c a b
      | Wr _ => wr h c k a b
      | Ww _ => ww c k a b
      | Rw _ => rw h c k a b
      | Co => has_order s = true /\ before (total c) a b
      end end.

  Lemma key_is_ok n x k : key_is n x k = true -> keyed n x k.
  Proof. destruct x; simpl; auto. apply Pos.eqb_eq. Qed.
  Lemma fits_sound n r q k a b : fits n r (q, k, a, b) = true -> entry_true (q, k, a, b) -> rel_means h c n r a b.
  Proof.
    destruct r, q; simpl; try discriminate; auto; intros H K; try (apply key_is_ok in H; eauto; fail).
    tauto.
  Qed.
  Lemma entry_inside q k a b : entry_true (q, k, a, b) -> is_in h c a /\ is_in h c b.
  Proof.
    destruct q; simpl.
    - intros [H|H]; [eapply so_inside|eapply init_inside]; eauto.
    - intros [H|H]; [eapply rt_inside|eapply init_inside]; eauto.
    - apply init_inside.
    - intros H. apply (wr_inside h c L) in H; tauto.
    - intros H. apply (ww_inside h c L) in H; tauto.
    - intros (_ & u & H1 & H2). apply (wr_inside h c L) in H1. apply (ww_inside h c L) in H2. tauto.
    - intros (H & l1 & l2 & E & H1 & H2). destruct (O H) as [_ T]. split; apply T; rewrite E; apply in_or_app; auto.
  Qed.
  Lemma nodes_in E t : (forall e, In e E -> entry_true e) -> In t (nodes_of E) -> is_in h c t.
  Proof.
    intros ET H. unfold nodes_of in H. apply in_map_iff in H. destruct H as ([t' u] & <- & H).
    apply elements_set in H. cbn [fst]. destruct H as [<-|H]; [left; auto|].
    apply in_flat_map in H. destruct H as ([[[q k] a] b] & H & K). apply ET in H. apply entry_inside in H.
    destruct K as [<-|[<-|[]]]; tauto.
  Qed.

  Section Eval.
    Variables (E : list entry) (nodes : list tid) (local : list key).
    Hypothesis ET : forall e, In e E -> entry_true e.
    Hypothesis LK : forall k, In k local -> In k (keys h).
    Hypothesis NI : forall t, In t nodes -> is_in h c t.

    Lemma test_ok n x t : is_in h c t -> test F n x t = true -> set_means h c n x t.
    Proof.
      intros J. destruct x as [|[x|]|x]; cbn [test set_means]; intros H.
      - exact J.
      - apply (writes_it_ok h c) in H; auto. destruct H as (v & H). exists (n x), v. split; [reflexivity|exact H].
      - rewrite orb_true_iff in H. destruct H as [H|H].
        + apply same_ok in H. subst. exists 1%positive, (initial h 1%positive). split; [exact I|]. left; auto.
        + destruct (M.find t (f_writes F)) as [m|] eqn:K; try discriminate.
          destruct (M.elements m) as [|[k v] r] eqn:Q; try discriminate.
          exists k, v. split; [exact I|]. eapply writes_find; eauto. apply M.elements_complete. rewrite Q. left; auto.
      - destruct (M.find t (f_reads F)) as [m|] eqn:K;
          try discriminate.
        apply existsb_exists in H. destruct H as ([i [k v]] & H & Q). apply key_is_ok in Q.
        exists k, i, v. split; auto. eapply reads_find; eauto. apply M.elements_complete. exact H.
    Qed.
    Lemma identity_ok a b : In (a, b) (identity nodes) -> a = b /\ is_in h c a.
    Proof.
      unfold identity. rewrite in_map_iff. intros (t & [= -> ->] & H). auto.
    Qed.

    Lemma eval_sound e : forall n a b, In (a, b) (eval F E nodes local n e) -> means h c n e a b.
    Proof.
      induction e; intros n a b H.
      - simpl in H. apply in_map_iff in H. destruct H as ([[[q k] x] y] & [= -> ->] & H).
        apply filter_In in H. destruct H as [H K]. simpl. eapply fits_sound; eauto.
      - apply identity_ok; auto.
      - cbn [eval] in H. apply in_map_iff in H. destruct H as (t & [= -> ->] & H). apply filter_In in H. destruct H as [J H].
        split; auto. apply test_ok; auto.
      - cbn [eval] in H. apply in_app_or in H. destruct H; [left|right]; auto.
      - cbn [eval] in H. apply filter_In in H. destruct H as [H K]. split; auto.
        apply existsb_exists in K. destruct K as ([x y] & Q & K). apply andb_true_iff in K.
        destruct K as [K1 K2]. apply same_ok in K1. apply same_ok in K2. simpl in K1, K2. subst. auto.
      - destruct e2; try (destruct H; fail). cbn [eval] in H. apply filter_In in H. destruct H as [H K]. split; auto.
        simpl. intros [-> _]. unfold same in K. simpl in K. rewrite Pos.eqb_refl in K. discriminate.
      - cbn [eval] in H. apply tidy_sound in H. apply compose_sound in H. destruct H as (x & H1 & H2).
        exists x. auto.
      - cbn [eval] in H. apply in_map_iff in H. destruct H as ([x y] & [= -> ->] & H). simpl. auto.
      - cbn [eval] in H. apply plus_sound in H. simpl. eapply clos_mono; [|exact H].
        intros x y Q. apply tidy_sound in Q. auto.
      - cbn [eval] in H. apply in_app_or in H. destruct H as [H|H].
        + left. apply identity_ok; auto.
        + right; auto.
      - cbn [eval] in H. apply in_flat_map in H. destruct H as (k & K & H). exists k. auto.
    Qed.
  End Eval.

  Lemma keys_of_ok nodes E k : In k (keys_of F nodes E) -> In k (keys h).
  Proof. unfold keys_of. rewrite filter_In. intros [_ H]. apply keys_have; auto. Qed.

  Lemma violates_sound E k : (forall e, In e E -> entry_true e) -> violates F E k = true -> ~ holds h c k.
  Proof.
    intros ET V H. pose proof (fun e => eval_sound E (nodes_of E) (keys_of F (nodes_of E) E) ET (keys_of_ok _ _) (fun t => nodes_in E t ET) e) as S.
    destruct k as [e|e|e|e]; unfold violates in V; cbn zeta in V; simpl in H.
    - apply has_loop_sound in V. destruct V as (a & V). apply S in V. exact (H _ V).
    - apply has_loop_sound in V. destruct V as (a & V). apply S in V. exact (H _ V).
    - destruct (eval F E _ _ _ e) as [|[a b] r] eqn:Q; try discriminate.
      apply (H a b). apply S. rewrite Q. left; auto.
    - discriminate.
  Qed.

  Lemma forced_ok E a b : (forall e, In e E -> entry_true e) -> In (a, b) (forced s F E) -> before (total c) a b.
  Proof.
    intros ET H. unfold forced in H. apply in_flat_map in H. destruct H as (k & K & H).
    destruct k as [e|e|e|e]; try (destruct H; fail). apply C in K. simpl in K. apply K.
    exact (eval_sound E (nodes_of E) (keys_of F (nodes_of E) E) ET (keys_of_ok _ _) (fun t => nodes_in E t ET) _ _ _ _ H).
  Qed.

  Lemma unordered_sound : has_order s = true -> NoDup (total c) -> forall rounds E,
    (forall e, In e E -> entry_true e) -> unordered s F rounds E = true -> False.
  Proof.
    intros HO N. induction rounds; intros E ET U; cbn [unordered] in U; cbn zeta in U;
      set (l := plus (tidy (forced s F E ++ eval F E [] [] (fun _ => 1%positive) (Rel Co)))) in *;
      (assert (B : forall a b, In (a, b) l -> before (total c) a b) by
        (intros a b H; apply plus_sound in H;
         assert (K : clos_trans _ (before (total c)) a b) by
          (eapply clos_mono; [|exact H]; intros x y Q; apply tidy_sound in Q; apply in_app_or in Q;
           destruct Q as [Q|Q]; [eapply forced_ok; eauto|];
           refine (eval_sound E [] [] ET _ _ (Rel Co) _ _ _ Q); intros ? []);
         clear H; induction K; auto; eapply before_trans; eauto));
      rewrite !orb_true_iff in U; destruct U as [[U|U]|U]; try discriminate;
      try (apply has_loop_sound in U; destruct U as (a & U); apply B in U;
           apply before_distinct in U; auto; fail);
      try (apply existsb_exists in U; destruct U as (k & K & U); apply violates_sound in U; auto; fail).
    apply IHrounds in U; auto. intros e H. apply in_app_or in H. destruct H as [H|H].
    - apply in_map_iff in H. destruct H as ([a b] & <- & H). simpl. auto.
    - apply filter_In in H. destruct H. auto.
  Qed.

  Variable A : M.t atom.
  Let here := table (fun x : txn => x) (included h c).
  Definition inb (t : tid) : bool := M.mem t here.
  Lemma inb_ok t : inb t = true -> is_in h c t.
  Proof.
    unfold inb. rewrite M.mem_find. destruct (M.find t here) eqn:E; try discriminate. intros _.
    apply table_find in E. destruct E as (x & H & _). right. eauto.
  Qed.
  Lemma in_inb t : is_in h c t -> t <> T0 -> inb t = true.
  Proof.
    intros [->|(x & H)] N; [congruence|]. unfold inb, here. rewrite M.mem_find.
    erewrite table_in; eauto. intros. eapply included_unique; eauto.
  Qed.
  Definition atom_true (a : atom) : bool :=
    match a with
    | Src t i u => inb t && Pos.eqb (source c t i) u
    | Taken t => inb t
    | Bef k a b => beforeb (T0 :: order c k) a b
    | Prec a b => beforeb (total c) a b
    end.
  Definition val (v : positive) : bool := match M.find v A with Some a => atom_true a | None => false end.
  Definition clause_true (cl : clause) : bool := existsb (fun l => Bool.eqb (val (snd l)) (fst l)) cl.

  Lemma val_true v a : M.find v A = Some a -> val v = true -> atom_true a = true.
  Proof. unfold val. intros ->. auto. Qed.
  Lemma val_is v a : M.find v A = Some a -> val v = atom_true a.
  Proof. unfold val. intros ->. auto. Qed.

  Lemma excused_ok t ins : excused F A t ins = true -> (forall v, In v ins -> val v = true) -> is_in h c t.
  Proof.
    unfold excused. rewrite orb_true_iff, existsb_exists. intros [H|(x & H & K)] V; [apply surely_ok; auto|].
    destruct (M.find x A) as [[| | |t']|] eqn:E; try discriminate. apply same_ok in K. subst t'.
    apply V in H. apply (val_true _ _ E) in H. apply inb_ok; auto.
  Qed.
  Lemma src_ok v t i u k x : M.find v A = Some (Src t i u) -> val v = true -> read_of F t i = Some (k, x) ->
    external h c t i k x /\ source c t i = u.
  Proof.
    intros E V R. apply (val_true _ _ E) in V. cbn [atom_true] in V. apply andb_true_iff in V. destruct V as [V1 V2].
    apply Pos.eqb_eq in V2. split; auto. apply read_of_ok; auto. apply inb_ok; auto.
  Qed.

  Lemma edge_sound e E vs : edge_entries s F A e = Some (E, vs) ->
    (forall v, In v vs -> val v = true) -> forall x, In x E -> entry_true x.
  Proof.
    destruct e as [r a b ins|v|v|v w]; cbn [edge_entries].
    - intros H V x Hx.
      match type of H with (if ?b then _ else _) = _ => destruct b eqn:K; try discriminate end.
      injection H as <- <-. destruct Hx as [<-|[]]. apply andb_true_iff in K. destruct K as [K Ex].
      pose proof (excused_ok _ _ Ex V) as J.
      assert (IO : same a T0 && negb (same b T0) = true -> init h c a b).
      { rewrite andb_true_iff. intros [H1 H2]. apply same_ok in H1. apply negb_true_iff in H2.
        apply Pos.eqb_neq in H2. repeat split; auto. }
      destruct r; try discriminate; cbn [entry_true].
      + apply orb_true_iff in K. destruct K as [K|K]; [right; auto|left].
        destruct (M.find a (f_txns F)) as [x|] eqn:Ea; try discriminate.
        destruct (M.find b (f_txns F)) as [y|] eqn:Eb; try discriminate.
        rewrite !andb_true_iff in K. destruct K as [[K0 K1] K2]. apply same_ok in K1. apply Pos.ltb_lt in K2.
        apply txn_ok in Ea. apply txn_ok in Eb.
        exists x, y. repeat split; auto.
        * apply certain_in; auto.
        * apply in_is; auto. eapply possible_not_T0; eauto.
        * unfold certain in K0. destruct (status x); auto; discriminate.
      + apply orb_true_iff in K. destruct K as [K|K]; [right; auto|left].
        apply andb_true_iff in K. destruct K as [N K]. apply negb_true_iff, Pos.eqb_neq in N.
        destruct (M.find a (f_txns F)) as [x|] eqn:Ea; try discriminate.
        destruct (M.find b (f_txns F)) as [y|] eqn:Eb; try discriminate.
        apply andb_true_iff in K. destruct K as [K0 K].
        destruct (ended x) as [e|] eqn:Ee; try discriminate. destruct (began y) as [t|] eqn:Et; try discriminate.
        apply N.ltb_lt in K. apply txn_ok in Ea. apply txn_ok in Eb. split; auto. exists x, y, e, t. repeat split; auto.
        * apply certain_in; auto.
        * apply in_is; auto. eapply possible_not_T0; eauto.
        * unfold certain in K0. destruct (status x); auto; discriminate.
      + auto.
    - destruct (M.find v A) as [[t i u| | |]|] eqn:Ev; try discriminate.
      destruct (read_of F t i) as [[k val0]|] eqn:Er; try discriminate. intros [= <- <-] V x [<-|[]].
      destruct (src_ok _ _ _ _ _ _ Ev (V v (or_introl eq_refl)) Er) as [X Y].
      cbn [entry_true]. exists i, val0. auto.
    - destruct (M.find v A) as [[|k a b|a b|]|] eqn:Ev; try discriminate.
      + intros [= <- <-] V x [<-|[]]. specialize (V v (or_introl eq_refl)).
        apply (val_true _ _ Ev) in V; apply beforeb_ok in V; exact V.
      + destruct (has_order s) eqn:HO; try discriminate. intros [= <- <-] V x [<-|[]]. specialize (V v (or_introl eq_refl)).
        apply (val_true _ _ Ev) in V; apply beforeb_ok in V. split; auto.
    - destruct (M.find v A) as [[t i u| | |]|] eqn:Ev; try discriminate.
      destruct (read_of F t i) as [[k val0]|] eqn:Er; try discriminate.
      destruct (M.find w A) as [[|k' u' b|u' b|]|] eqn:Ew; try discriminate.
      + destruct (same k k' && same u u') eqn:K; try discriminate. apply andb_true_iff in K. destruct K as [K1 K2].
        apply same_ok in K1. apply same_ok in K2. subst k' u'. intros [= <- <-] V x Hx.
        pose proof (V w (or_intror (or_introl eq_refl))) as V2.
        apply (val_true _ _ Ew) in V2. apply beforeb_ok in V2.
        destruct (src_ok _ _ _ _ _ _ Ev (V v (or_introl eq_refl)) Er) as [X Y].
        assert (R : wr h c k u t) by (exists i, val0; auto).
        destruct Hx as [<-|[<-|Hx]]; [exact R|exact V2|]. destruct (same t b) eqn:N; [destruct Hx|].
        destruct Hx as [<-|[]]. apply Pos.eqb_neq in N. split; auto. exists u. split; [exact R|exact V2].
      + destruct (has_order s && same u u') eqn:K; try discriminate. apply andb_true_iff in K. destruct K as [HO K].
        apply same_ok in K. subst u'. intros [= <- <-] V x Hx.
        pose proof (V w (or_intror (or_introl eq_refl))) as V2.
        apply (val_true _ _ Ew) in V2. apply beforeb_ok in V2.
        destruct (src_ok _ _ _ _ _ _ Ev (V v (or_introl eq_refl)) Er) as [X Y].
        destruct Hx as [<-|[<-|[]]]; [|split; auto]. exists i, val0. auto.
  Qed.

  Lemma all_entries_sound l : forall E vs, all_entries s F A l = Some (E, vs) ->
    (forall v, In v vs -> val v = true) -> forall x, In x E -> entry_true x.
  Proof.
    induction l; cbn [all_entries]; intros E vs H V x Hx; [injection H as <- <-; destruct Hx|].
    destruct (edge_entries s F A a) as [[E1 v1]|] eqn:K1; try discriminate.
    destruct (all_entries s F A l) as [[E2 v2]|] eqn:K2; try discriminate. injection H as <- <-.
    apply in_app_or in Hx. destruct Hx as [Hx|Hx].
    - eapply edge_sound; eauto. intros. apply V. apply in_or_app. auto.
    - eapply IHl; eauto. intros. apply V. apply in_or_app. auto.
  Qed.

  Lemma negative_clause vs : ((forall v, In v vs -> val v = true) -> False) ->
    clause_true (map (fun x => (false, x)) vs) = true.
  Proof.
    intros H. destruct (clause_true _) eqn:E; auto. exfalso. apply H. intros v Hv.
    destruct (val v) eqn:K; auto. exfalso. rewrite <- not_true_iff_false in E. apply E.
    unfold clause_true. apply existsb_exists. exists (false, v). split.
    - apply (in_map (fun x => (false, x))). exact Hv.
    - simpl. rewrite K. reflexivity.
  Qed.
  Lemma clause_in b v cl : In (b, v) cl -> val v = b -> clause_true cl = true.
  Proof.
    intros H K. unfold clause_true. apply existsb_exists. exists (b, v). split; auto. simpl. rewrite K.
    destruct b; reflexivity.
  Qed.

  Lemma writer_listed t k : is_in h c t -> writes_it F t k = true -> In t (T0 :: order c k).
  Proof. intros J H. apply (writes_it_ok h c t k J) in H. destruct L as (_ & _ & _ & LO). apply LO. exact H. Qed.
  (** A clause holds that has literals for what must count, if it holds where that counts. *)
  Lemma where_in (cl : clause) ins : ((forall v, In v ins -> val v = true) -> clause_true cl = true) ->
    clause_true (cl ++ map (fun x => (false, x)) ins) = true.
  Proof.
    intros H. destruct (existsb (fun v => negb (val v)) ins) eqn:E.
    - apply existsb_exists in E. destruct E as (v & Hv & K). apply negb_true_iff in K.
      eapply clause_in; [apply in_or_app; right; apply (in_map (fun x => (false, x))); exact Hv|exact K].
    - assert (T : clause_true cl = true).
      { apply H. intros v Hv. destruct (val v) eqn:K; auto. exfalso. rewrite <- not_true_iff_false in E. apply E.
        apply existsb_exists. exists v. rewrite K. auto. }
      unfold clause_true in *. apply existsb_exists in T. destruct T as (l & Hl & K). apply existsb_exists.
      exists l. split; auto. apply in_or_app. auto.
  Qed.

  Definition consistent (m : M.t bool) := forall v b, M.find v m = Some b -> val v = b.
  Definition go (db : M.t clause) := fix go (hs : list positive) (m : M.t bool) : bool :=
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
        end.
  Lemma go_sound db : (forall x cl, M.find x db = Some cl -> clause_true cl = true) ->
    forall hs m, consistent m -> go db hs m = true -> False.
  Proof.
    intros D. induction hs as [|x r IH]; intros m Cm H; cbn [go] in H; [discriminate|].
    destruct (M.find x db) as [cl|] eqn:E; try discriminate. apply D in E. unfold clause_true in E.
    apply existsb_exists in E. destruct E as ([b v] & Hin & Hv). apply eqb_prop in Hv. cbn [fst snd] in Hv.
    match type of H with match ?l with _ => _ end = _ => set (fl := l) in * end.
    assert (K : In (b, v) fl).
    { apply filter_In. split; auto. cbn [fst snd]. destruct (M.find v m) as [b'|] eqn:E; auto.
      apply Cm in E. rewrite <- E, Hv. destruct b; reflexivity. }
    assert (A1 : forall l, l = (b, v) -> consistent (M.add (snd l) (fst l) m)).
    { intros l -> u b' Q. cbn [fst snd] in Q. destruct (Pos.eq_dec u v).
      - subst. rewrite M.gss in Q. congruence.
      - rewrite M.gso in Q by auto. apply Cm; auto. }
    destruct fl as [|l ls]; [destruct K|]. destruct ls as [|l2 ls].
    - destruct K as [K|[]]. eapply IH; [|exact H]. apply A1. exact K.
    - match type of H with (if ?b then _ else _) = _ => destruct b eqn:Q; try discriminate end.
      eapply IH; [|exact H]. apply A1. destruct K as [K|K]; auto.
      rewrite forallb_forall in Q. apply Q in K. apply andb_true_iff in K. destruct K as [K1 K2].
      apply Pos.eqb_eq in K1. apply eqb_prop in K2. rewrite (surjective_pairing l), K1, K2. reflexivity.
  Qed.

  Lemma start_consistent cl : clause_true cl = false ->
    consistent (fold_left (fun m l => M.add (snd l) (negb (fst l)) m) cl (M.empty bool)).
  Proof.
    intros H. assert (K : forall b v, In (b, v) cl -> val v = negb b).
    { intros b v Hin. destruct (val v) eqn:E, b; auto; exfalso;
        rewrite <- not_true_iff_false in H; apply H; eapply clause_in; eauto. }
    clear H. assert (G : forall m, consistent m -> consistent (fold_left (fun m l => M.add (snd l) (negb (fst l)) m) cl m)).
    { induction cl as [|[b v] cl IH]; intros m Cm; [exact Cm|]. cbn [fold_left fst snd]. apply IH.
      - intros; apply K; right; auto.
      - intros u b' Q. destruct (Pos.eq_dec u v).
        + subst. rewrite M.gss in Q. rewrite (K b v); [congruence|left; auto].
        + rewrite M.gso in Q by auto. apply Cm; auto. }
    apply G. intros v b Q. rewrite M.gempty in Q. discriminate.
  Qed.

  Lemma step_sound p db cl : (forall x cl, M.find x db = Some cl -> clause_true cl = true) ->
    step_clause h s F A p db = Some cl -> clause_true cl = true.
  Proof.
    intros D. destruct p as [t ins|t i vs ins|number rounds edges|vs|v w ins|v w|v w|v ins|c0 hints]; cbn [step_clause].
    - destruct (M.find t (f_txns F)) as [x|] eqn:E; try discriminate.
      match goal with |- (if ?b then _ else _) = _ -> _ => destruct b eqn:K; try discriminate end.
      intros [= <-]. apply negative_clause. intros V. apply andb_true_iff in K. destruct K as [K Ex].
      apply (excused_ok _ _ Ex) in V.
      apply existsb_exists in K. destruct K as ([[[i k] v] own] & Hin & K). destruct own as [n|]; try discriminate.
      apply negb_true_iff in K. apply not_true_iff_false in K. apply K. destruct L as (_ & LI & _). apply txn_ok in E.
      apply (LI t x i k v n); [|exact Hin]. apply in_is; [exact V|eapply possible_not_T0; exact E|exact E].
    - destruct (read_of F t i) as [[k v]|] eqn:E; try discriminate.
      match goal with |- (if ?b then _ else _) = _ -> _ => destruct b eqn:K; try discriminate end.
      destruct (excused F A t ins) eqn:Ex; try discriminate.
      intros [= <-]. apply where_in. intros V. pose proof (excused_ok _ _ Ex V) as J.
      apply (read_of_ok h c t i k v J) in E.
      rewrite forallb_forall in K. destruct L as (L1 & _). destruct (L1 _ _ _ _ E) as (N & y & Wr & Fy).
      assert (Hc : In (source c t i) ((if matches v (initial h k) then [T0] else []) ++
          match v with
          | Is v => match M.find k (f_writers F) with Some m => get (value_key v) m | None => [] end
          | _ => map snd (filter (fun p => matches v (fst p)) (get k (f_versions F)))
          end)).
      { apply in_or_app. destruct (writers_have _ _ _ _ _ Wr) as [[Eu Ev]|(m & Em & Hm)].
        - left. rewrite Eu, <- Ev, Fy. left; auto.
        - right. destruct (versions_have _ _ _ _ _ Wr) as [[Z _]|Hv].
          + destruct Wr as [[_ Z2]|(z & Hz & _)]; [|apply included_not_T0 in Hz; congruence].
            exfalso. unfold F, facts_of in Em. cbn [f_writers] in Em. unfold M.map in Em.
            rewrite M.gmapi in Em. destruct (M.find k (group (written (possible h)))) eqn:Q; try discriminate.
            injection Em as <-. apply group_out in Hm.
            assert (W : In (k, (value_key y, source c t i)) (written (possible h))) by (apply group_out; unfold get; rewrite Q; exact Hm).
            unfold written in W. apply in_flat_map in W. destruct W as ([t' x'] & Hp & W). apply in_map_iff in W.
            destruct W as (q & W & _). injection W as _ _ W. apply possible_not_T0 in Hp. cbn in W. congruence.
          + assert (G : In (source c t i) (map snd (filter (fun p => matches v (fst p)) (get k (f_versions F))))).
            { apply in_map_iff. exists (y, source c t i). split; auto. apply filter_In. split; auto. }
            destruct v as [v|l|l]; try exact G. cbn [matches] in Fy. apply N.eqb_eq in Fy. subst y. unfold F. rewrite Em. exact Hm. }
      apply K in Hc. apply orb_true_iff in Hc. destruct Hc as [Hc|Hc]; [apply same_ok in Hc; congruence|].
      apply existsb_exists in Hc. destruct Hc as (x & Hx & Hc).
      destruct (M.find x A) as [[t' i' u'| | |]|] eqn:E2; try discriminate.
      rewrite !andb_true_iff in Hc. destruct Hc as [[H1 H2] H3].
      apply same_ok in H1. apply same_ok in H2. apply same_ok in H3.
      eapply clause_in; [apply (in_map (fun x => (true, x))); exact Hx|]. rewrite (val_is _ _ E2). cbn [atom_true].
      rewrite <- H1, <- H2, <- H3, Pos.eqb_refl, andb_true_r. apply in_inb; auto.
      destruct E as (y0 & Hy & _). eapply included_not_T0; eauto.
    - destruct (all_entries s F A edges) as [[E vs]|] eqn:K; try discriminate.
      assert (HO : has_order s = true \/ has_order s = false) by (destruct (has_order s); auto).
      destruct HO as [HO|HO]; rewrite HO.
      + destruct (unordered s F rounds E) eqn:U; try discriminate. intros [= <-]. apply negative_clause. intros V.
        eapply unordered_sound; [exact HO|apply O; exact HO|eapply all_entries_sound; eauto|exact U].
      + destruct (nth_error (checks s) number) as [k|] eqn:Ck; try discriminate.
        destruct (violates F E k) eqn:U; try discriminate. intros [= <-]. apply negative_clause. intros V.
        eapply violates_sound; [eapply all_entries_sound; eauto|exact U|]. apply C. eapply nth_error_In; eauto.
    - destruct (all_entries s F A (map Over vs)) as [[E vs']|] eqn:K; try discriminate.
      match goal with |- (if ?b then _ else _) = _ -> _ => destruct b eqn:U; try discriminate end.
      intros [= <-]. apply negative_clause. intros V.
      assert (vs' = vs).
      { clear -K. revert E vs' K. induction vs as [|v vs IH]; cbn [map all_entries]; intros E vs' K; [congruence|].
        destruct (edge_entries s F A (Over v)) as [[E1 v1]|] eqn:K1; try discriminate.
        destruct (all_entries s F A (map Over vs)) as [[E2 v2]|] eqn:K2; try discriminate.
        injection K as <- <-. rewrite (IH _ _ eq_refl). cbn [edge_entries] in K1.
        destruct (M.find v A) as [[| | |]|]; try discriminate; [|destruct (has_order s); try discriminate]; injection K1 as <- <-; reflexivity. }
      subst vs'. pose proof (all_entries_sound _ _ _ K V) as ET.
      apply existsb_exists in U. destruct U as (k & _ & U). apply has_loop_sound in U. destruct U as (a & U).
      apply plus_sound in U. match type of U with context [existsb ?f E] => destruct (existsb f E) end.
      + assert (HO : has_order s = true \/ has_order s = false) by (destruct (has_order s); auto).
        destruct HO as [HO|HO]; rewrite HO in U; [|destruct (clos_trans_t1n _ _ _ _ U); destruct H].
        destruct (O HO) as [N _]. apply (before_loop _ a N). eapply clos_mono; [|exact U].
        intros x y Q. apply tidy_sound in Q. refine (eval_sound E [] [] ET _ _ (Rel Co) _ _ _ Q); intros ? [].
      + destruct L as (_ & _ & N & _). apply (before_loop _ a (N k)). eapply clos_mono; [|exact U].
        intros x y Q. apply tidy_sound in Q.
        assert (S : means h c (fun _ => k) (Rel (Ww (Some 0))) x y) by
          (refine (eval_sound E [] [] ET _ _ (Rel (Ww (Some 0))) _ _ _ Q); intros ? []).
        destruct S as (k' & -> & S). exact S.
    - destruct (M.find v A) as [[|k a b|a b|]|] eqn:Ev; try discriminate;
        destruct (M.find w A) as [[|k' b' a'|b' a'|]|] eqn:Ew; try discriminate;
        match goal with |- (if ?b then _ else _) = _ -> _ => destruct b eqn:K; try discriminate end;
        intros [= <-]; rewrite !andb_true_iff in K; apply (where_in [(true, v); (true, w)]); intros V.
      + destruct K as [[[[[[[K1 K2] K3] K4] K5] K6] X1] X2]. apply same_ok in K1. apply same_ok in K2. apply same_ok in K3.
        apply negb_true_iff, Pos.eqb_neq in K4. subst.
        apply writer_listed in K5; [|eapply excused_ok; eauto]. apply writer_listed in K6; [|eapply excused_ok; eauto].
        destruct (before_total _ _ _ K5 K6 K4) as [B|B]; apply beforeb_ok in B.
        * eapply clause_in; [left; reflexivity|]. rewrite (val_is _ _ Ev). exact B.
        * eapply clause_in; [right; left; reflexivity|]. rewrite (val_is _ _ Ew). exact B.
      + destruct K as [[[[[K0 K2] K3] K4] X1] X2]. apply same_ok in K2. apply same_ok in K3.
        apply negb_true_iff, Pos.eqb_neq in K4. subst. destruct (O K0) as [_ T].
        apply excused_ok in X1; auto. apply excused_ok in X2; auto. apply T in X1. apply T in X2.
        destruct (before_total _ _ _ X1 X2 K4) as [B|B]; apply beforeb_ok in B.
        * eapply clause_in; [left; reflexivity|]. rewrite (val_is _ _ Ev). exact B.
        * eapply clause_in; [right; left; reflexivity|]. rewrite (val_is _ _ Ew). exact B.
    - assert (Q : forall (P : Prop) t, (val v = true -> P) -> (P -> is_in h c t) -> t <> T0 ->
        M.find w A = Some (Taken t) -> clause_true [(false, v); (true, w)] = true).
      { intros P t H1 H2 N E. destruct (val v) eqn:Hv.
        - eapply clause_in; [right; left; reflexivity|]. rewrite (val_is _ _ E). cbn [atom_true]. apply in_inb; auto.
        - eapply clause_in; [left; reflexivity|]. exact Hv. }
      destruct (M.find v A) as [[t i u|k a b|a b|]|] eqn:Ev; try discriminate;
        destruct (M.find w A) as [[| | |t']|] eqn:Ew; try discriminate.
      + destruct (read_of F t i) as [[k x]|] eqn:R; try discriminate.
        destruct (negb (same t' T0) && (same t' t || same t' u)) eqn:K; try discriminate. intros [= <-].
        apply andb_true_iff in K. destruct K as [N K]. apply negb_true_iff, Pos.eqb_neq in N.
        apply (Q (external h c t i k x /\ source c t i = u) t'); auto.
        * intros Hv. eapply src_ok; eauto.
        * intros [E S]. apply orb_true_iff in K. destruct K as [K|K]; apply same_ok in K.
          -- rewrite K. destruct E as (y & Hy & _). right; eauto.
          -- rewrite K, <- S. destruct L as (L1 & _). destruct (L1 _ _ _ _ E) as (_ & v' & [[Z _]|(y & Hy & _)] & _);
               [left; exact Z|right; eauto].
      + destruct (negb (same t' T0) && (same t' a || same t' b)) eqn:K; try discriminate. intros [= <-].
        apply andb_true_iff in K. destruct K as [N K]. apply negb_true_iff, Pos.eqb_neq in N.
        apply (Q (ww c k a b) t'); auto.
        * intros Hv. apply (val_true _ _ Ev) in Hv. apply beforeb_ok in Hv. exact Hv.
        * intros B. apply (ww_inside h c L) in B. apply orb_true_iff in K. destruct K as [K|K]; apply same_ok in K; rewrite K; tauto.
      + destruct (has_order s && negb (same t' T0) && (same t' a || same t' b)) eqn:K; try discriminate. intros [= <-].
        rewrite !andb_true_iff in K. destruct K as [[HO N] K]. apply negb_true_iff, Pos.eqb_neq in N.
        apply (Q (before (total c) a b) t'); auto.
        * intros Hv. apply (val_true _ _ Ev) in Hv. apply beforeb_ok in Hv. exact Hv.
        * intros B. assert (X : is_in h c a /\ is_in h c b).
          { apply (entry_inside Co 1%positive a b). split; auto. }
          apply orb_true_iff in K. destruct K as [K|K]; apply same_ok in K; rewrite K; tauto.
    - destruct (M.find v A) as [[t i u| | |]|] eqn:Ev; try discriminate.
      destruct (M.find w A) as [[t' i' u'| | |]|] eqn:Ew; try discriminate.
      destruct (same t t' && same i i' && negb (same u u')) eqn:K; try discriminate. intros [= <-].
      rewrite !andb_true_iff in K. destruct K as [[K1 K2] K3]. apply same_ok in K1. apply same_ok in K2.
      apply negb_true_iff, Pos.eqb_neq in K3. subst. apply (negative_clause [v; w]). intros V.
      pose proof (V v (or_introl eq_refl)) as V1. pose proof (V w (or_intror (or_introl eq_refl))) as V2.
      apply (val_true _ _ Ev) in V1. apply (val_true _ _ Ew) in V2. cbn [atom_true] in V1, V2.
      apply andb_true_iff in V1. apply andb_true_iff in V2. destruct V1 as [_ V1], V2 as [_ V2].
      apply Pos.eqb_eq in V1. apply Pos.eqb_eq in V2. congruence.
    - destruct (M.find v A) as [[|k a b| |]|] eqn:Ev; try discriminate.
      destruct (same a T0 && negb (same b T0) && writes_it F b k && excused F A b ins) eqn:K; try discriminate. intros [= <-].
      apply (where_in [(true, v)]). intros V.
      rewrite !andb_true_iff in K. destruct K as [[[K1 K2] K3] X]. apply same_ok in K1.
      apply negb_true_iff, Pos.eqb_neq in K2. apply writer_listed in K3; [|eapply excused_ok; eauto]. subst.
      eapply clause_in; [left; reflexivity|]. rewrite (val_is _ _ Ev). apply beforeb_ok.
      exists [T0], (order c k). repeat split; simpl; auto. destruct K3; [congruence|auto].
    - fold (go db).
      destruct (go db hints (fold_left (fun m l => M.add (snd l) (negb (fst l)) m) c0 (M.empty bool))) eqn:G;
        try discriminate.
      intros [= <-]. destruct (clause_true c0) eqn:E; auto. exfalso. eapply go_sound; [exact D| |exact G].
      apply start_consistent; auto.
  Qed.

  Lemma run_sound l : forall next db, (forall x cl, M.find x db = Some cl -> clause_true cl = true) ->
    run h s F A l next db = true -> False.
  Proof.
    induction l as [|p l IH]; intros next db D H; cbn [run] in H; [discriminate|].
    destruct (step_clause h s F A p db) as [cl|] eqn:E; try discriminate.
    pose proof (step_sound _ _ _ D E) as T. destruct cl as [|x cl]; [discriminate|].
    eapply IH; [|exact H]. intros y cl' Q. destruct (Pos.eq_dec y next).
    - subst. rewrite M.gss in Q. injection Q as <-. exact T.
    - rewrite M.gso in Q by auto. eauto.
  Qed.
End Sound.

Theorem check_refutation_sound h s r : check_refutation h s r = true -> ~ satisfies s h.
Proof.
  intros H (c & L & O & C). eapply (run_sound (judged s h) s c L O C (atoms r)); [|exact H].
  intros x cl Q. rewrite M.gempty in Q. discriminate.
Qed.
Print Assumptions check_refutation_sound.
