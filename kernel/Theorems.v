(** The two theorems, with what they state in full. If a definition or a theorem changes what it says,
    a proof in this file fails. *)
From Coq Require Import PArith List.
From Kernel Require Import Defs Legal CheckWitness Refute CheckRefutation.
Import ListNotations.

(** A witness that the checker accepts: the history satisfies the level, whatever the oracle guessed. *)
Theorem witness_sound : forall (h : history) (s : spec) (w : witness) (o : oracle),
  check_witness h s w o = true -> satisfies s h.
Proof. exact check_witness_sound. Qed.

(** A refutation that the checker accepts: the history does not satisfy the level. *)
Theorem refutation_sound : forall (h : history) (s : spec) (r : refutation),
  check_refutation h s r = true -> ~ satisfies s h.
Proof. exact check_refutation_sound. Qed.

(** What it means that a history satisfies a level, down to the notions that Defs.v explains one by one. *)
Theorem satisfies_means : forall (s : spec) (h : history), satisfies s h <->
  exists c : choice,
    (** each external read that something may explain returned what its source, another transaction
        that counts, wrote; where reads are judged, so did each other external read, *)
    ((forall (t : tid) (i : positive) (k : key) (r : result), external h c t i k r ->
        judges_reads s = true \/ explicable h t k r ->
        source c t i <> t /\ explained h c t k r (source c t i)) /\
     (** and the rest of the reads returned what their own transaction had written; *)
     (forall t x i k r w own, judges_reads s = true -> In (t, x) (included h c) ->
        In (i, k, r, w :: own) (reads 1 [] (ops x)) -> own_explained h c t k r (w :: own)) /\
     (** each key has an order of exactly its writers, without repetition, after the initial state; *)
     (forall k, NoDup (T0 :: order c k)) /\
     (forall k u, In u (T0 :: order c k) <-> writer h c u k)) /\
    (** a level with an order of all transactions has one of all that count, each once; *)
    (has_order s = true -> NoDup (total c) /\ forall t, In t (total c) <-> is_in h c t) /\
    (** and every check holds. *)
    forall k, In k (checks s) -> holds h c k.
Proof. intros. reflexivity. Qed.

Print Assumptions witness_sound.
Print Assumptions refutation_sound.
