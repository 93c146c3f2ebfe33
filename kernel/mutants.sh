#!/bin/sh
# Changes one definition of Defs.v at a time. The proofs must fail for each; a proof that still holds
# would not depend on the definition.
set -eu
cd "$(dirname "$0")"
rm -rf build/mutants
failed=0
mutant() { # name, what sed does to Defs.v
  mkdir -p build/mutants
  cp Defs.v Witness.v Legal.v CheckWitness.v Refute.v CheckRefutation.v build/mutants
  sed -i "$2" build/mutants/Defs.v
  if cmp -s Defs.v build/mutants/Defs.v; then
    echo "$1: changes nothing" >&2
    failed=1
    return
  fi
  (cd build/mutants && coqc -q -Q . Kernel Defs.v) || { echo "$1: no definition" >&2; failed=1; return; }
  for module in Witness Legal CheckWitness Refute CheckRefutation; do
    if ! (cd build/mutants && coqc -q -Q . Kernel $module.v) >build/mutants/log 2>&1; then
      echo "$1: caught in $module.v"
      return
    fi
  done
  echo "$1: NOT CAUGHT" >&2
  failed=1
}
mutant "a source may be the reader" 's/source c t i <> t \/\\ explained/explained/'
mutant "so leads out of indeterminate transactions" '/Definition so/,/\./s/status x = Committed \/\\ session/session/'
mutant "rw with the identity" 's/Definition rw k a b := a <> b \/\\ exists/Definition rw k a b := exists/'
mutant "rt is not strict" 's/(e < s)%N\./(e <= s)%N./'
mutant "a list may show own later elements" 's/ \/\\ ~ In t l1 \/\\/ \/\\/'
mutant "an order may lack a writer" 's/In u (T0 :: order c k) <-> writer h c u k/In u (T0 :: order c k) -> writer h c u k/'
exit $failed
