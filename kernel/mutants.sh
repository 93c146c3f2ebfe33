#!/bin/sh
# Changes one definition at a time. A proof or a test must fail for each: a change that nothing
# notices would be one that nobody has to explain. Some definitions say what a level means; for these,
# a proof fails. Others are shared by the meaning and the checker (what a read is, what is written,
# what judges reads), so the proofs still hold; the tests, which compare the kernel with isolang and
# with a definition in Python, must fail.
#   PYTHON  a Python with isolang and its tests' packages; without it, no test runs
#   TESTS   the folder of the tests, if it is not beside this one
set -eu
cd "$(dirname "$0")"
rm -rf build/mutants
failed=0
modules='Witness Legal CheckWitness Refute CheckRefutation Theorems'
prepare() { # name, file, what sed does to it
  rm -rf build/mutants
  mkdir -p build/mutants
  cp ./*.v driver.ml build/mutants
  sed -i "$3" "build/mutants/$2"
  if cmp -s "$2" "build/mutants/$2"; then
    echo "$1: changes nothing" >&2
    failed=1
    return 1
  fi
}
proved() { # whether all proofs hold
  (cd build/mutants && coqc -q -Q . Kernel Defs.v) || { echo "$1: no definition" >&2; failed=1; return 1; }
  for module in $modules; do
    if ! (cd build/mutants && coqc -q -Q . Kernel "$module.v") >build/mutants/log 2>&1; then
      echo "$1: caught in $module.v"
      return 1
    fi
  done
}
mutant() { # name, what sed does to Defs.v
  prepare "$1" Defs.v "$2" || return 0
  proved "$1" || return 0
  echo "$1: NOT CAUGHT" >&2
  failed=1
}
shared() { # name, file, what sed does to it
  prepare "$1" "$2" "$3" || return 0
  if [ "$2" = Defs.v ]; then
    proved "$1" || return 0
    (cd build/mutants && coqc -q -Q . Kernel Extract.v && rm kernel.mli) >build/mutants/log 2>&1
  else
    cp kernel.ml build/mutants
  fi
  (cd build/mutants && ocamlopt -w -a kernel.ml driver.ml -o isolang-kernel) || { echo "$1: no program" >&2; failed=1; return 0; }
  if ISOLANG_TESTED_KERNEL=$PWD/build/mutants/isolang-kernel "$PYTHON" -m pytest -q -x -p no:cacheprovider \
    "${TESTS:-../tests}/kernel/test_random_levels.py" "${TESTS:-../tests}/kernel/test_text.py" >build/mutants/log 2>&1; then
    echo "$1: NOT CAUGHT" >&2
    failed=1
  elif grep -qE '^(E  |FAILED|[0-9]+ failed)' build/mutants/log; then
    echo "$1: caught by $(sed -n 's/^FAILED [^:]*::\([a-z_]*\).*/\1/p' build/mutants/log | head -1)"
  else
    tail -5 build/mutants/log >&2
    echo "$1: the tests did not run" >&2
    failed=1
  fi
}
mutant "a source may be the reader" 's/source c t i <> t \/\\ explained/explained/'
mutant "so leads out of indeterminate transactions" '/Definition so/,/\./s/status x = Committed \/\\ session/session/'
mutant "rw with the identity" 's/Definition rw k a b := a <> b \/\\ exists/Definition rw k a b := exists/'
mutant "rt is not strict" 's/(e < s)%N\./(e <= s)%N./'
mutant "a list may show own later elements" 's/ \/\\ ~ In t l1 \/\\/ \/\\/'
mutant "an order may lack a writer" 's/In u (T0 :: order c k) <-> writer h c u k/In u (T0 :: order c k) -> writer h c u k/'
mutant "a read that something explains need not be explained" 's/judged = true \\\/ explicable h t k r ->/judged = true ->/'
mutant "an own write explains a read" 's/exists u v, u <> t \/\\ matches/exists u v, matches/'
[ -n "${PYTHON:-}" ] || { echo "no PYTHON: the shared definitions are not tried" >&2; exit $failed; }
shared "asking who read judges reads" Defs.v 's/  | Rel (Wr _) | Rel (Rw _) => true/  | Rel (Wr _) | Rel (Rw _) | Lift (Readers _) => true/'
shared "anti-dependencies do not judge reads" Defs.v 's/  | Rel (Wr _) | Rel (Rw _) => true/  | Rel (Wr _) => true/'
shared "a check beside others does not judge reads" Defs.v 's/  existsb (fun k => match k with Acyclic/  forallb (fun k => match k with Acyclic/'
shared "a read of other values is one of these" Defs.v 's/NoneOf l => negb (existsb (N.eqb v) l)/NoneOf l => existsb (N.eqb v) l/'
shared "no read is own" Defs.v 's/(i, k, v, written k before) ::/(i, k, v, []) ::/'
shared "the first own write is read" Defs.v 's/(i, k, v, written k before) ::/(i, k, v, rev (written k before)) ::/'
shared "a write has no number" Defs.v 's/reads (Pos.succ i) (W k v :: before) r/reads i (W k v :: before) r/'
shared "a variable keeps its first key" Defs.v 's/fun y => if Nat.eqb x y then k else n y/fun y => n y/'
shared "all variables have one key" Defs.v 's/fun y => if Nat.eqb x y then k else n y/fun y => k/'
shared "aborted transactions count" Defs.v 's/Aborted => false | Indeterminate => took_effect/Aborted => took_effect c (fst p) | Indeterminate => took_effect/'
shared "the program leaves out the last key" driver.ml 's/keys = numbers n \[\]/keys = numbers (n - 1) []/'
shared "the program reads the outcome unknown as committed" driver.ml 's/"u" -> Indeterminate/"u" -> Committed/'
shared "the program reads a time less" driver.ml 's/let ended = time () in/let ended = (let _ = time () in None) in/'
exit $failed
