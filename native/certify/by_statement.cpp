// `by_statement` copies a choice so that each statement that reads becomes a place of its own. A transaction's write
// then leads to the first statement after the transaction's last write of the key.
#include "certify/by_statement.hpp"

#include <algorithm>
#include <utility>

#include "certify/moments.hpp"
#include "core/index.hpp"

namespace isolang::certify {
namespace {

// Returns, for each writer in each version order, the first statement of its transaction after its last write of the
// key, or -1 if there is none. `start` contains the first operation of each statement.
std::vector<std::int32_t> behind_writes(const History& h, const Choice& c,
                                        const std::vector<std::int64_t>& start) {
  std::vector<std::pair<std::int32_t, std::int64_t>> writes;  // (transaction, index in the version orders)
  std::vector<std::int32_t> key_of(c.order.size());
  for (std::size_t key = 0; key + 1 < c.key_start.size(); ++key)
    for (std::int64_t i = c.key_start[key]; i < c.key_start[key + 1]; ++i) {
      writes.emplace_back(c.order[i], i);
      key_of[i] = static_cast<std::int32_t>(key);
    }
  std::ranges::sort(writes);
  std::vector<std::int32_t> behind(c.order.size(), -1);
  std::vector<std::int64_t> last(idx(h.n_keys()), -1);
  std::int32_t owner = -1;
  for (const auto& [t, i] : writes) {
    if (t != owner)
      for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op)
        if (is_write(h.kind(op)) && h.op_ok[op] != 0) last[h.op_key[op]] = op;
    owner = t;
    const auto next = std::ranges::upper_bound(start, last[key_of[i]]);
    if (next != start.end() && *next < h.op_start[t + 1])
      behind[i] = static_cast<std::int32_t>(next - start.begin());
  }
  return behind;
}

}  // namespace

Choice by_statement(const History& h, const Choice& c, bool writes, bool together) {
  Choice result = c;
  Statements& apart = result.apart;
  const Moments moments(h);
  apart.first = c.places();
  std::int64_t last = -1;
  std::vector<std::int64_t> start;
  std::vector<Moments::Span> spans;
  std::int32_t spans_of = -1;
  for (std::size_t i = 0; i < c.reads.size(); ++i) {
    const std::int64_t op = c.op[i];
    const std::int32_t scan = h.statement_of(op), owner = c.reads[i].reader;
    const std::int64_t first = scan < 0 ? op : h.statement_start[scan];
    if (owner != spans_of) moments.statements_of(spans_of = owner, spans);
    const auto [sent, answered] = spans[idx(op - h.op_start[owner])];
    // mutant: checker-together-sent, checker-together-answered, checker-together-apart, checker-together-owner
    const bool with_last = first != last && together && h.has_operation_times() && i > 0 &&
                           c.op[i - 1] + 1 == op && apart.owner.back() == owner &&
                           apart.sent.back() == sent && apart.answered.back() == answered;
    if (with_last) apart.several.back() = 1;
    // mutant: checker-statement-of-each-row
    if (first != last && !with_last) {
      start.push_back(first);
      apart.owner.push_back(owner);
      apart.several.push_back(0);
      apart.sent.push_back(sent);
      apart.answered.push_back(answered);
      result.included.push_back(0);
    }
    last = first;
    result.reads[i].reader = result.places() - 1;
    // mutant: checker-own-of-statement
    result.reads[i].own = -1;
  }
  if (writes) apart.behind = behind_writes(h, c, start);
  return result;
}

}  // namespace isolang::certify
