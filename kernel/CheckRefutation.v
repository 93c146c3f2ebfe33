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
  Context {judged : bool}.
  Variables (h : history) (c : choice).
  Let F := facts_of h judged.

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
  Lemma writes_it_ok t k : is_in h c t -> writes_it F t k = true -> writer h c t k.
  Proof.
    unfold writes_it. rewrite orb_true_iff. intros I [H|H].
    - apply same_ok in H. subst. left; auto.
    - destruct (M.find t (f_writes F)) as [m|] eqn:E; try discriminate. rewrite M.mem_find in H.
      destruct (M.find k m) eqn:K; try discriminate. eapply wrote_writer, writes_find; eauto.
  Qed.
  Lemma reads_find t m i k v : is_in h c t -> M.find t (f_reads F) = Some m -> M.find i m = Some (k, v) ->
    external h c t i k v.
  Proof.
    intros I H K. apply table_find in H. destruct H as (x & H & ->). apply table_find in K.
    destruct K as (p & K & <-). exists x. split.
    - apply in_is; auto. eapply possible_not_T0; eauto.
    - unfold external_reads in K.
      apply in_flat_map in K. destruct K as ([[[i' k'] v'] own] & K & K'). destruct own; [|destruct K'].
      destruct K' as [[= -> -> ->]|[]]. exact K.
  Qed.
  (** What a read that a choice explains has: see [explicable]. *)
  Lemma sourced_sound t i k v : legal judged h c -> external h c t i k v -> f_sourced F t k v = true -> explicable h t k v.
  Proof.
    intros (L1 & _) E S. assert (N : t <> T0) by (destruct E as (x & Hx & _); eapply included_not_T0; eauto).
    unfold F, facts_of in S. cbn [f_sourced] in S. unfold sourced in S. apply orb_true_iff in S. destruct S as [S|S].
    - destruct (L1 _ _ _ _ E (or_introl S)) as [D X]. eapply explained_explicable; eauto.
    - apply explicableb_ok in S; auto.
  Qed.
  Lemma read_of_ok t i k v : legal judged h c -> is_in h c t -> read_of F t i = Some (k, v) ->
    external h c t i k v /\ explicable h t k v.
  Proof.
    unfold read_of. intros L J. destruct (M.find t (f_reads F)) eqn:E; try discriminate.
    destruct (M.find i t0) as [[k' v']|] eqn:G; try discriminate. destruct (f_sourced F t k' v') eqn:S; try discriminate.
    intros [= -> ->]. assert (X : external h c t i k v) by (eapply reads_find; eauto). split; auto.
    eapply sourced_sound; eauto.
  Qed.
  Lemma writers_have u k v : wrote h c u k v -> (u = T0 /\ In v (initial h k)) \/
    exists m, M.find k (f_writers F) = Some m /\ In u (get (value_key v) m).
  Proof.
    intros [H|(x & H & L)]; [auto|right]. apply possible_of in H.
    assert (W : In (k, (value_key v, u)) (writers_by_value (possible h))).
    { unfold writers_by_value. apply in_flat_map. exists (u, x). split; auto. cbn [fst snd].
      apply in_map_iff. exists (k, v). split; auto. apply M.elements_correct. rewrite last_writes_ok. exact L. }
    apply group_in in W. unfold get in W. unfold F, facts_of. cbn [f_writers]. unfold M.map. rewrite M.gmapi.
    destruct (M.find k (group (writers_by_value (possible h)))) eqn:E; [|destruct W]. simpl.
    eexists. split; [reflexivity|]. apply group_in. exact W.
  Qed.
  Lemma versions_have u k v : wrote h c u k v -> (u = T0 /\ In v (initial h k)) \/ In (v, u) (get k (f_versions F)).
  Proof.
    intros [H|(x & H & L)]; [auto|right]. apply possible_of in H. apply versions_of_ok. exists x.
    unfold possible in H. apply filter_In in H. destruct H as [H S]. cbn [snd] in S. split; auto. split; auto.
    intros Q. rewrite Q in S. discriminate.
  Qed.
  (** * Lists *)
  Let E (k : key) (u : tid) : list value := elements_in (f_txns F) k u.
  Lemma elements_known k u x : In (u, x) (possible h) -> E k u = written k (ops x).
  Proof.
    intros H. unfold E, elements_in, F, facts_of. cbn [f_txns].
    rewrite (table_in (fun x => x) _ _ _ H); auto. intros. eapply possible_unique; eauto.
  Qed.
  Lemma in_written k v l : In (W k v) l <-> In v (written k l).
  Proof.
    induction l as [|[k' w|k' r] l IH]; simpl; [tauto| |].
    - destruct (Pos.eqb_spec k k').
      + subst. simpl. rewrite <- IH. split; intros [H|H]; auto; left; congruence.
      + rewrite <- IH. split; [intros [H|H]; auto; congruence|auto].
    - rewrite <- IH. split; [intros [H|H]; auto; discriminate|auto].
  Qed.
  Lemma elements_have k u x e : M.mem k (f_lists F) = true -> In (u, x) (possible h) ->
    In e (written k (ops x)) -> In u (writers_of F k e).
  Proof.
    intros K H W. assert (G : In (k, (value_key e, u)) (elements (list_keys h) (possible h))).
    { unfold elements. apply in_flat_map. exists (u, x). split; auto. apply in_flat_map. exists (Defs.W k e).
      split; [apply in_written; auto|]. cbn [fst]. change (list_keys h) with (f_lists F). rewrite K. left; auto. }
    apply group_in in G. unfold get in G. unfold writers_of, F, facts_of. cbn [f_elements]. unfold M.map.
    rewrite M.gmapi. destruct (M.find k (group (elements (list_keys h) (possible h)))) eqn:Q; [|destruct G].
    simpl. apply group_in. exact G.
  Qed.
  Lemma only_by_ok k a e u x : M.mem k (f_lists F) = true -> only_by F k a e = true ->
    In (u, x) (possible h) -> In e (E k u) -> u = a.
  Proof.
    intros K O H W. rewrite (elements_known k u x H) in W. pose proof (elements_have _ _ _ _ K H W) as G.
    unfold only_by in O. rewrite forallb_forall in O. apply O in G. apply same_ok in G. auto.
  Qed.

  Lemma strip_app m : forall r, strip m (m ++ r) = Some r.
  Proof. induction m as [|x m IH]; simpl; intros; auto. rewrite N.eqb_refl. auto. Qed.
  Lemma listed_possible k u : legal judged h c -> In u (order c k) -> exists x, In (u, x) (included h c).
  Proof.
    intros (_ & _ & N & O) H. assert (W : writer h c u k) by (apply O; right; auto).
    destruct W as [->|(x & v & W & _)]; [|eauto]. specialize (N k). inversion N. tauto.
  Qed.
  Lemma appended_known k l : (forall u, In u l -> exists x, In (u, x) (included h c)) ->
    appended h c k l = flat_map (E k) l.
  Proof.
    intros H. rewrite appended_is. induction l as [|u l IH]; simpl; auto. rewrite IH by (intros; apply H; right; auto).
    f_equal. destruct (H u (or_introl eq_refl)) as (x & Hx).
    rewrite (elements_known k u x) by (apply possible_of; auto). unfold elements_in.
    rewrite (table_in (fun x => x) _ _ _ Hx); auto. intros. eapply included_unique; eauto.
  Qed.
  Lemma shown_known k mid own : shown h k ((beginning h k ++ mid) ++ rev own) own = Some mid.
  Proof.
    unfold shown. rewrite <- app_assoc, strip_app, rev_app_distr, rev_involutive, strip_app, rev_involutive. auto.
  Qed.

  Lemma list_read_ok t i k m own : judged = true -> legal judged h c -> is_in h c t -> list_read h F t i = Some (k, m, own) ->
    M.mem k (f_lists F) = true /\ exists p r, order c k = p ++ r /\ m = Some (flat_map (E k) p) /\ ~ In t p /\
      (own = true -> exists r', r = t :: r').
  Proof.
    intros Jd L J. unfold list_read. destruct (M.find t (f_txns F)) as [x|] eqn:Q; try discriminate.
    apply txn_ok in Q. assert (Hx : In (t, x) (included h c)) by (apply in_is; auto; eapply possible_not_T0; eauto).
    match goal with |- context [find ?f ?l] => destruct (find f l) as [[[[j k'] r] o]|] eqn:G; try discriminate end.
    apply find_some in G. destruct G as [G _]. destruct r as [v|l|l|l]; try discriminate.
    destruct (M.mem k' (f_lists F)) eqn:K; try discriminate. intros [= -> <- <-]. split; auto.
    pose proof L as (L1 & L2 & L3 & _).
    assert (P : forall p r, order c k = p ++ r -> forall u, In u p -> exists x, In (u, x) (included h c)).
    { intros p r Ord u Hu. apply (listed_possible k u L). rewrite Ord. apply in_or_app. auto. }
    destruct o as [|v o].
    - destruct (L1 t j k (ListIs l)) as (_ & X); [exists x; auto|left; exact Jd|]. destruct X as (p & r & Ord & _ & N & ->).
      exists p, r. split; [exact Ord|]. rewrite (appended_known k p (P _ _ Ord)). split; [|split; [auto|discriminate]].
      pose proof (shown_known k (flat_map (E k) p) []) as S. cbn [rev] in S. rewrite app_nil_r in S. exact S.
    - destruct (L2 t x j k (ListIs l) v o Jd Hx G) as (p & r & Ord & ->). exists p, (t :: r).
      split; [exact Ord|]. rewrite (appended_known k p (P _ _ Ord)). split; [|split].
      + exact (shown_known k (flat_map (E k) p) (v :: o)).
      + intros Ht. pose proof (L3 k) as N. rewrite Ord in N. inversion N as [|? ? _ N2]. subst.
        apply NoDup_remove_2 in N2. apply N2. apply in_or_app. auto.
      + intros _. eauto.
  Qed.

  Lemma candidates_have t k r u : legal judged h c -> explained h c t k r u -> In u (candidates h F k r).
  Proof.
    intros L X.
    assert (B : forall v, wrote h c u k v -> u <> T0 -> In u (by_value F k v)).
    { intros v W N. destruct (writers_have _ _ _ W) as [[Z _]|(m & Q & H)]; [congruence|]. unfold by_value.
      rewrite Q. exact H. }
    assert (R : (exists v, wrote h c u k v /\ matches r v = true) ->
      In u ((if existsb (matches r) (initial h k) then [T0] else []) ++ match r with
        | Is v => by_value F k v
        | _ => map snd (filter (fun p => matches r (fst p)) (get k (f_versions F))) end)).
    { intros (v & W & Fits). apply in_or_app. destruct (versions_have _ _ _ W) as [[-> H]|H].
      - left. assert (Q : existsb (matches r) (initial h k) = true) by (apply existsb_exists; eauto).
        rewrite Q. left; auto.
      - right. assert (N : u <> T0).
        { intros ->. apply versions_of_ok in H. destruct H as (x & H & _). apply numbered_ge in H. unfold T0 in H. lia. }
        assert (G : In u (map snd (filter (fun p => matches r (fst p)) (get k (f_versions F))))).
        { apply in_map_iff. exists (v, u). split; auto. apply filter_In. auto. }
        destruct r as [w|l|l|l]; try exact G. cbn [matches] in Fits. apply N.eqb_eq in Fits. subst w. auto. }
    destruct r as [w|l|l|l]; cbn [explained] in X; try (apply R; exact X; fail).
    clear R. destruct X as (l1 & l2 & Ord & -> & _ & ->). cbn [candidates]. apply in_or_app.
    destruct l1 as [|v l1] using rev_ind; [left|right; clear IHl1].
    - cbn [appended flat_map]. unfold appended. simpl flat_map. rewrite strip_app. left; auto.
    - rewrite last_last in *. assert (Hv : In v (order c k)) by (rewrite Ord; apply in_or_app; left; apply in_or_app; simpl; auto).
      destruct (listed_possible _ _ L Hv) as (x & Hx).
      assert (W : writer h c v k) by (destruct L as (_ & _ & _ & O); apply O; right; auto).
      destruct W as [->|(y & w & Hy & Lw)]; [apply included_not_T0 in Hx; congruence|].
      rewrite (included_unique _ _ _ _ _ Hy Hx) in Lw.
      rewrite appended_known by (intros z Hz; apply (listed_possible k z L); rewrite Ord; apply in_or_app; auto).
      rewrite flat_map_app. simpl flat_map. rewrite app_nil_r, !rev_app_distr, (elements_known k v x) by (apply possible_of; auto).
      pose proof Lw as Lw'. unfold last_write in Lw. rewrite written_rev in Lw.
      destruct (rev (written k (ops x))) as [|z m] eqn:Q; [discriminate|]. injection Lw as ->. simpl.
      apply B; [right; eauto|]. eapply included_not_T0; eauto.
  Qed.

  Section Read.
    Variables (k : key) (t : tid) (p r : list tid) (own : bool).
    Hypothesis K : M.mem k (f_lists F) = true.
    Hypothesis L : legal judged h c.
    Hypothesis Ord : order c k = p ++ r.
    Hypothesis Tp : ~ In t p.
    Hypothesis Own : own = true -> exists r', r = t :: r'.
    Let mid := flat_map (E k) p.

    Lemma by_only a e u : only_by F k a e = true -> In u p -> In e (E k u) -> u = a.
    Proof.
      intros O Hu He. destruct (listed_possible k u L) as (x & Hx); [rewrite Ord; apply in_or_app; auto|].
      eapply only_by_ok; eauto. apply possible_of; eauto.
    Qed.
    Lemma shown_writer a e : only_by F k a e = true -> In e mid -> In a p.
    Proof.
      intros O He. unfold mid in He. apply in_flat_map in He. destruct He as (u & Hu & He).
      rewrite <- (by_only _ _ _ O Hu He). exact Hu.
    Qed.

    Lemma filter_flat (q : value -> bool) (f : tid -> list value) l :
      filter q (flat_map f l) = flat_map (fun u => filter q (f u)) l.
    Proof. induction l; simpl; auto. rewrite filter_app, IHl. auto. Qed.
    Lemma flat_nothing (f : tid -> list value) l : (forall u, In u l -> f u = []) -> flat_map f l = [].
    Proof. induction l; simpl; intros H; auto. rewrite (H a), IHl; auto. Qed.
    Lemma filter_nothing (q : value -> bool) l : (forall e, In e l -> q e = false) -> filter q l = [].
    Proof. induction l; simpl; intros H; auto. rewrite (H a); auto. Qed.

    Lemma nodup_left {A} (l m : list A) : NoDup (l ++ m) -> NoDup l.
    Proof.
      induction l as [|x l IH]; simpl; [constructor|]. rewrite !NoDup_cons_iff. intros [H1 H2]. split; auto.
      intros H. apply H1. apply in_or_app. auto.
    Qed.
    Lemma torn_ok a : is_torn F k mid t a = true -> False.
    Proof.
      unfold is_torn. intros H.
      assert (N : forall u, In u p -> u <> a -> filter (only_by F k a) (E k u) = []).
      { intros u Hu D. apply filter_nothing. intros e He. destruct (only_by F k a e) eqn:O; auto.
        exfalso. apply D. eapply by_only; eauto. }
      destruct (in_dec Pos.eq_dec a p) as [I|I].
      - assert (Q : filter (only_by F k a) mid = filter (only_by F k a) (E k a)).
        { unfold mid. rewrite filter_flat. apply in_split in I. destruct I as (p1 & p2 & ->).
          assert (Dup : NoDup (p1 ++ a :: p2)).
          { destruct L as (_ & _ & ND & _). pose proof (ND k) as X. inversion X as [|? ? _ X2]. rewrite Ord in X2.
            eapply nodup_left; eauto. }
          apply NoDup_remove_2 in Dup. rewrite flat_map_app. simpl.
          rewrite (flat_nothing _ p1), (flat_nothing _ p2); [rewrite app_nil_r; auto| |];
            intros u Hu; apply N; try (apply in_or_app; simpl; auto); intros ->; apply Dup; apply in_or_app; auto. }
        rewrite Q in H. fold (E k a) in H. destruct (filter (only_by F k a) (E k a)) as [|e m]; [discriminate|].
        apply orb_true_iff in H. destruct H as [H|H]; [apply same_ok in H; subst; auto|].
        pose proof (strip_app (e :: m) []) as S. rewrite app_nil_r in S. rewrite S in H. discriminate.
      - unfold mid in H. rewrite filter_flat, flat_nothing in H; [discriminate|].
        intros u Hu. apply N; auto. intros ->. auto.
    Qed.

    Lemma later_split q1 q2 l : later q1 q2 l = true ->
      exists l1 e l2 f, l = l1 ++ e :: l2 /\ q1 e = true /\ In f l2 /\ q2 f = true.
    Proof.
      induction l as [|e l IH]; simpl; [discriminate|]. destruct (q1 e) eqn:Q.
      - intros H. apply existsb_exists in H. destruct H as (f & Hf & H). exists [], e, l, f. auto.
      - intros H. apply IH in H. destruct H as (l1 & e' & l2 & f & -> & H). exists (e :: l1), e', l2, f. auto.
    Qed.
    Lemma flat_before (f : tid -> list value) l : forall l1 e l2 g, flat_map f l = l1 ++ e :: l2 -> In g l2 ->
      exists u v, In e (f u) /\ In g (f v) /\ (u = v /\ In u l \/ before l u v).
    Proof.
      induction l as [|u l IH]; simpl; intros l1 e l2 g Q G; [destruct l1; discriminate|].
      assert (S : (exists m, f u = l1 ++ e :: m /\ l2 = m ++ flat_map f l) \/
                  exists m, l1 = f u ++ m /\ flat_map f l = m ++ e :: l2).
      { clear IH G. revert Q. generalize (f u) as a. generalize (flat_map f l) as b. intros b a.
        revert l1. induction a as [|x a IHa]; simpl; intros l1 Q; [right; exists l1; auto|].
        destruct l1 as [|y l1]; simpl in Q; injection Q as -> Q.
        - left. exists a. auto.
        - apply IHa in Q. destruct Q as [(m & -> & ->)|(m & -> & ->)]; [left|right]; exists m; auto. }
      destruct S as [(m & Q1 & ->)|(m & -> & Q2)].
      - assert (He : In e (f u)) by (rewrite Q1; apply in_or_app; simpl; auto).
        apply in_app_or in G. destruct G as [G|G].
        + exists u, u. repeat split; auto. rewrite Q1. apply in_or_app. simpl. auto.
        + apply in_flat_map in G. destruct G as (v & Hv & G). exists u, v. repeat split; auto. right.
          exists [u], l. simpl. auto.
      - destruct (IH _ _ _ _ Q2 G) as (x & y & H1 & H2 & H3). exists x, y. repeat split; auto.
        destruct H3 as [[-> H3]|H3]; [left; auto|right]. change (u :: l) with ([u] ++ l). apply before_app_r. auto.
    Qed.
    Lemma before_in {A} (l : list A) a b : before l a b -> In a l /\ In b l.
    Proof. intros (l1 & l2 & -> & H1 & H2). split; apply in_or_app; auto. Qed.

    Lemma order_ok a b b_in : (b_in = true -> is_in h c b) ->
      lists_order F k mid own t a b b_in = true -> before (T0 :: order c k) a b.
    Proof.
      intros B. unfold lists_order. rewrite andb_true_iff, orb_true_iff, !andb_true_iff. intros [D H].
      apply negb_true_iff, Pos.eqb_neq in D.
      change (T0 :: order c k) with ([T0] ++ order c k). apply before_app_r. destruct H as [H|[[H H2] H3]].
      - apply later_split in H. destruct H as (l1 & e & l2 & f & Q & He & Hf & Of).
        destruct (flat_before _ _ _ _ _ _ Q Hf) as (u & v & Eu & Ev & R).
        assert (In u p /\ In v p) as [Hu Hv].
        { destruct R as [[-> R]|R]; auto. apply before_in; auto. }
        apply (by_only _ _ _ He Hu) in Eu. apply (by_only _ _ _ Of Hv) in Ev. subst.
        destruct R as [[R _]|R]; [congruence|]. rewrite Ord. apply before_app_l. exact R.
      - apply B in H2. apply existsb_exists in H3. destruct H3 as (g & Hg & G).
        assert (Eg : exists x, In (b, x) (included h c) /\ In g (written k (ops x))).
        { destruct H2 as [->|(x & Hx)].
          - exfalso. unfold elements_in in Hg. destruct (M.find T0 (f_txns F)) eqn:Q; [|destruct Hg].
            apply txn_ok, possible_not_T0 in Q. congruence.
          - exists x. split; auto. rewrite <- (elements_known k b x); [exact Hg|apply possible_of; auto]. }
        destruct Eg as (x & Hx & Wg).
        assert (Np : ~ In b p).
        { intros Hb. apply negb_true_iff in G. rewrite <- not_true_iff_false in G. apply G.
          apply existsb_exists. exists g. split; [|apply N.eqb_refl]. unfold mid. apply in_flat_map. exists b.
          split; auto. }
        assert (Hb : In b r).
        { assert (Z : In b (T0 :: order c k)).
          { destruct L as (_ & _ & _ & O). apply O. right. exists x. unfold last_write. rewrite written_rev.
            destruct (rev (written k (ops x))) as [|z m] eqn:Q; [|exists z; auto].
            apply (f_equal (@rev value)) in Q. rewrite rev_involutive in Q. rewrite Q in Wg. destruct Wg. }
          destruct Z as [Z|Z]; [exfalso; apply included_not_T0 in Hx; congruence|].
          rewrite Ord in Z. apply in_app_or in Z. destruct Z; tauto. }
        rewrite Ord. apply orb_true_iff in H. destruct H as [H|H].
        + apply existsb_exists in H. destruct H as (e & He & H). exists p, r. repeat split; auto.
          eapply shown_writer; eauto.
        + apply andb_true_iff in H. destruct H as [HO H]. apply same_ok in H. subst a.
          destruct (Own HO) as (r' & ->). apply before_app_r. destruct Hb as [Hb|Hb]; [congruence|].
          exists [t], r'. simpl. auto.
    Qed.

    Lemma someone_ok e : existsb (N.eqb e) mid = true ->
      exists u x, In (u, x) (included h c) /\ In u (writers_of F k e).
    Proof.
      intros H. apply existsb_exists in H. destruct H as (e' & H & Q). apply N.eqb_eq in Q. subst e'.
      unfold mid in H. apply in_flat_map in H. destruct H as (u & Hu & He).
      destruct (listed_possible k u L) as (x & Hx); [rewrite Ord; apply in_or_app; auto|].
      exists u, x. split; auto. eapply elements_have; eauto; [apply possible_of; eauto|].
      rewrite <- (elements_known k u x); [exact He|apply possible_of; eauto].
    Qed.
  End Read.
  Lemma keys_have k : M.mem k (f_keys F) = true -> In k (keys h).
  Proof. apply set_of_in. Qed.
End Facts.

Section Sound.
  Variables (h : history) (s : spec) (c : choice).
  Let F := facts_of h (judges_reads s).
  Hypothesis L : legal (judges_reads s) h c.
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
      - apply (writes_it_ok h c) in H; auto.
      - destruct (same t T0) eqn:Z.
        + apply same_ok in Z. subst. apply negb_true_iff in H.
          destruct (keys h) as [|k r] eqn:K; [unfold F, facts_of in H; cbn [f_keys] in H; rewrite K in H; discriminate|].
          exists k. split; [left; auto|left; auto].
        + destruct (M.find t (f_writes F)) as [m|] eqn:K; try discriminate.
          apply existsb_exists in H. destruct H as ([k v] & H & Q). cbn [fst] in Q.
          exists k. split; [exact (keys_have (judged := judges_reads s) h k Q)|].
          eapply wrote_writer, writes_find; eauto. apply M.elements_complete. exact H.
      - destruct (M.find t (f_reads F)) as [m|] eqn:K;
          try discriminate.
        apply existsb_exists in H. destruct H as ([i [k v]] & H & Q). apply andb_true_iff in Q.
        destruct Q as [Q Src]. apply key_is_ok in Q. cbn [fst snd] in Src.
        assert (X : external h c t i k v) by (eapply reads_find; eauto; apply M.elements_complete; exact H).
        exists k, i, v. split; [exact Q|split; [exact X|]]. eapply sourced_sound; eauto.
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
  Proof. unfold keys_of. rewrite filter_In. intros [_ H]. exact (keys_have (judged := judges_reads s) h k H). Qed.

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
    unfold excused. rewrite orb_true_iff, existsb_exists. intros [H|(x & H & K)] V; [apply (surely_ok (judged := judges_reads s) h c t H)|].
    destruct (M.find x A) as [[| | |t']|] eqn:E; try discriminate. apply same_ok in K. subst t'.
    apply V in H. apply (val_true _ _ E) in H. apply inb_ok; auto.
  Qed.
  Lemma src_ok v t i u k x : M.find v A = Some (Src t i u) -> val v = true -> read_of F t i = Some (k, x) ->
    external h c t i k x /\ explicable h t k x /\ source c t i = u.
  Proof.
    intros E V R. apply (val_true _ _ E) in V. cbn [atom_true] in V. apply andb_true_iff in V. destruct V as [V1 V2].
    apply Pos.eqb_eq in V2. apply inb_ok in V1. destruct (read_of_ok h c t i k x L V1 R). auto.
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
    intros D. unfold step_clause. destruct (of_results p && negb (judges_reads s)) eqn:G; try discriminate.
    assert (J0 : of_results p = true -> judges_reads s = true).
    { intros Q. rewrite Q in G. destruct (judges_reads s); auto. }
    clear G. destruct p as [t ins|t i vs ins|number rounds edges|vs|v w ins|v w|v w|v ins|t i e vs ins|t i v ins|t i a ins|c0 hints]; cbn [clause_of_step of_results] in *.
    - destruct (M.find t (f_txns F)) as [x|] eqn:E; try discriminate.
      match goal with |- (if ?b then _ else _) = _ -> _ => destruct b eqn:K; try discriminate end.
      intros [= <-]. apply negative_clause. intros V. apply andb_true_iff in K. destruct K as [K Ex].
      apply (excused_ok _ _ Ex) in V.
      apply existsb_exists in K. destruct K as ([[[i k] r] own] & Hin & K). destruct L as (_ & LI & _). apply txn_ok in E.
      destruct own as [|n own]; [destruct r; discriminate|].
      assert (X : own_explained h c t k r (n :: own)).
      { apply (LI t x i k r n own (J0 eq_refl)); [|exact Hin]. apply in_is; [exact V|eapply possible_not_T0; exact E|exact E]. }
      destruct r as [v|l|l|l]; cbn [own_explained hd_error] in X;
        try (destruct X as (m & [= <-] & X); rewrite X in K; discriminate).
      destruct X as (l1 & l2 & _ & ->). rewrite rev_app_distr, rev_involutive, strip_app in K. discriminate.
    - destruct (read_of F t i) as [[k v]|] eqn:E; try discriminate.
      match goal with |- (if ?b then _ else _) = _ -> _ => destruct b eqn:K; try discriminate end.
      destruct (excused F A t ins) eqn:Ex; try discriminate.
      intros [= <-]. apply where_in. intros V. pose proof (excused_ok _ _ Ex V) as J.
      apply (read_of_ok h c t i k v L J) in E. destruct E as [E Src].
      rewrite forallb_forall in K. destruct (proj1 L _ _ _ _ E (or_intror Src)) as (N & X).
      pose proof (candidates_have h c t k v _ L X) as Hc.
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
        apply (Q (external h c t i k x /\ explicable h t k x /\ source c t i = u) t'); auto.
        * intros Hv. eapply src_ok; eauto.
        * intros (E & Src & S). apply orb_true_iff in K. destruct K as [K|K]; apply same_ok in K.
          -- rewrite K. destruct E as (y & Hy & _). right; eauto.
          -- rewrite K, <- S. destruct (proj1 L _ _ _ _ E (or_intror Src)) as (_ & X).
             eapply listed_inside; [exact L|eapply explained_writer; [exact L|exact X]].
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
    - destruct (list_read h F t i) as [[[k [mid|]] own]|] eqn:R; try discriminate.
      destruct (existsb (N.eqb e) mid && excused F A t ins && _) eqn:K; try discriminate. intros [= <-].
      apply where_in. intros V. rewrite !andb_true_iff in K. destruct K as [[K1 K2] K3].
      pose proof (excused_ok _ _ K2 V) as J.
      destruct (list_read_ok h c t i _ _ _ (J0 eq_refl) L J R) as (M1 & p & r & Ord & [= ->] & Tp & Own).
      destruct (someone_ok h c k p r M1 L Ord e K1) as (u & x & Hu & Hw).
      rewrite forallb_forall in K3. apply K3 in Hw. apply existsb_exists in Hw. destruct Hw as (v & Hv & Q).
      destruct (M.find v A) as [[| | |t']|] eqn:Ev; try discriminate. apply same_ok in Q. subst t'.
      eapply clause_in; [apply (in_map (fun x => (true, x))); exact Hv|]. rewrite (val_is _ _ Ev). cbn [atom_true].
      apply in_inb; [right; eauto|eapply included_not_T0; eauto].
    - destruct (list_read h F t i) as [[[k [mid|]] own]|] eqn:R; try discriminate.
      destruct (M.find v A) as [[|k' a b| |]|] eqn:Ev; try discriminate.
      destruct (same k k' && excused F A t ins && _) eqn:K; try discriminate. intros [= <-].
      apply (where_in [(true, v)]). intros V. rewrite !andb_true_iff in K. destruct K as [[K1 K2] K3].
      apply same_ok in K1. subst k'. pose proof (excused_ok _ _ K2 V) as J.
      destruct (list_read_ok h c t i _ _ _ (J0 eq_refl) L J R) as (M1 & p & r & Ord & [= ->] & Tp & Own).
      eapply clause_in; [left; reflexivity|]. rewrite (val_is _ _ Ev). apply beforeb_ok.
      eapply (order_ok h c k t p r own M1 L Ord Own a b); [|exact K3]. intros X. eapply excused_ok; eauto.
    - destruct (list_read h F t i) as [[[k mid] own]|] eqn:R; try discriminate.
      match goal with |- (if ?b then _ else _) = _ -> _ => destruct b eqn:K; try discriminate end. intros [= <-].
      apply negative_clause. intros V. apply andb_true_iff in K. destruct K as [K1 K2].
      pose proof (excused_ok _ _ K2 V) as J.
      destruct (list_read_ok h c t i _ _ _ (J0 eq_refl) L J R) as (M1 & p & r & Ord & -> & Tp & Own).
      eapply (torn_ok h c k t p r); eauto.
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
  intros H (c & L & O & C). eapply (run_sound h s c L O C (atoms r)); [|exact H].
  intros x cl Q. rewrite M.gempty in Q. discriminate.
Qed.
