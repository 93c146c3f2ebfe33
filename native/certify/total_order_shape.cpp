// `total_order_shape` tests which words a check's automaton accepts. This tells which of the two shapes in the header
// the check has.
#include "certify/total_order_shape.hpp"

#include <vector>

namespace isolang::certify {

TotalOrderShape total_order_shape(const ReadCheck& check) {
  const auto word = [&](std::vector<Relation> letters) {
    std::vector<int> labels;
    for (const Relation r : letters) labels.push_back(static_cast<int>(r));
    return check.positions.reads(labels, false, [](std::size_t, int) { return false; });
  };
  TotalOrderShape s;
  if (!check.acyclic() || check.earlier() || !word({Relation::wr}) || !word({Relation::ww})) return s;
  s.two = !word({Relation::rw});
  // mutant: any-check-one-order
  const auto leads = [&](Relation r) { return word({r}) && (!s.two || word({r, Relation::rw})); };
  s.fits = leads(Relation::wr);
  s.locks = !s.two || word({Relation::ww, Relation::rw});
  s.so = leads(Relation::so);
  s.rt = leads(Relation::rt);
  return s;
}

}  // namespace isolang::certify
