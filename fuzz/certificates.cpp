// Makes a small history and a proof from the fuzzer's bytes. The certificate checkers must accept the proof, or reject it
// with a reason. CMake defines kTarget, the checker's name. `both` makes a witness and a refutation for the same history,
// and the checkers must not accept both of them.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "certify/certify.hpp"
#include "core/history.hpp"
#include "core/problem.hpp"

extern const std::string_view kTarget;

namespace {

using namespace isolang;
using namespace isolang::certify;

using Checks = std::vector<CheckText>;

// Checks of the library's levels, one of each form.
const std::vector<Checks>& levels() {
  static const std::vector<Checks> all = {
      {{"G0", CheckKind::acyclic, "ww"}},
      {{"G1c", CheckKind::acyclic, "(| wr ww)"}},
      {{"SER", CheckKind::acyclic, "(| so wr ww rw)"}},
      {{"SI", CheckKind::acyclic, "(; (| so wr ww) (? rw))"}},
      {{"PC", CheckKind::acyclic, "(| (; (| so wr) (? rw)) ww)"}},
      {{"SSER", CheckKind::acyclic, "(| so rt wr ww rw)"}},
      {{"co", CheckKind::acyclic, "(| so wr ww)"}, {"monotonic-reads", CheckKind::earlier, "(; wr rw)"}},
      {{"co", CheckKind::acyclic, "(| so wr ww)"}, {"causal", CheckKind::irreflexive, "(; (+ (| so wr)) rw)"}},
      {{"PSI", CheckKind::irreflexive, "(; (+ (| so wr ww)) (? rw))"}},
      {{"key", CheckKind::of_one_key, "(| so wr ww rw)"}, {"G1c", CheckKind::acyclic, "(| wr ww)"}},
      {{"key", CheckKind::of_one_key, "(| so wr ww)"}, {"behind", CheckKind::of_one_key, "(; (+ (| so wr)) rw)"}},
      {{"two-phase", CheckKind::acyclic, "(| done locked wr ww rw)"}},
      {{"first-updater", CheckKind::irreflexive, "(; late ww)"}, {"locks", CheckKind::acyclic, "(| locked ww done)"}},
      {{"snapshot", CheckKind::by_statement,
        "(| (; (| committed-before so wr) (? (| answered-before po)) (| committed-after tx rw)) so "
        "rt ww done)"}},
      {{"RSS", CheckKind::acyclic, "(| so wr ww rw (; W rt W))"}},
      {{"ar", CheckKind::acyclic, "(| init wr (; (| init wr) (* (| (; R so R)))) ww)"},
       {"EXT", CheckKind::irreflexive, "(; (; (| init wr) (* (| (; R so R)))) rw)"}},
  };
  return all;
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  History history() {
    History h;
    std::array<std::int32_t, 3> keys{};
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const std::int32_t initial = bytes_.ConsumeBool() ? kNil : h.values.intern_integer(1);
      keys[k] = h.key_of(h.key_atoms.intern_integer(static_cast<std::int64_t>(k)), initial);
    }
    h.sessions = bytes_.ConsumeIntegralInRange<std::int32_t>(1, 3);
    h.has_time = bytes_.ConsumeBool();
    const int transactions = bytes_.ConsumeIntegralInRange(0, 8);
    for (int t = 0; t < transactions; ++t) {
      const auto status = static_cast<Status>(bytes_.ConsumeIntegralInRange(0, 2));
      const auto session = t < h.sessions ? t : bytes_.ConsumeIntegralInRange<std::int32_t>(0, h.sessions - 1);
      const std::int64_t begin = bytes_.ConsumeIntegralInRange<std::int64_t>(0, 20);
      const std::int64_t end = begin + bytes_.ConsumeIntegralInRange<std::int64_t>(0, 9);
      h.begin_transaction(session, status, t, t, 0, begin, status == Status::indeterminate ? kTimeUnknownEnd : end);
      for (int i = bytes_.ConsumeIntegralInRange(0, 4); i > 0; --i) {
        if (bytes_.ConsumeIntegralInRange(0, 7) == 0)
          predicate_read(h, keys, i);
        else
          operation(h, keys, i);
      }
    }
    h.sessions = std::min(h.sessions, h.transactions());
    if (flag()) add_times(h);
    return h;
  }

  const Checks& checks() { return levels()[bytes_.ConsumeIntegralInRange<std::size_t>(0, levels().size() - 1)]; }

  // Returns a check whose expression is random text, as in a user's specification.
  Checks wild_checks() {
    static constexpr std::array kinds = {CheckKind::acyclic,    CheckKind::irreflexive,  CheckKind::earlier,
                                         CheckKind::of_one_key, CheckKind::by_statement, CheckKind::back_by_statement};
    return {{"wild", kinds[bytes_.ConsumeIntegralInRange<std::size_t>(0, kinds.size() - 1)],
             bytes_.ConsumeRandomLengthString(80)}};
  }

  bool flag() { return bytes_.ConsumeBool(); }

  // Returns mostly a number of an existing element, and sometimes any number.
  std::int64_t number(std::int64_t there) {
    if (bytes_.ConsumeIntegralInRange(0, 15) != 0) return bytes_.ConsumeIntegralInRange<std::int64_t>(-1, there);
    return bytes_.ConsumeIntegral<std::int64_t>();
  }

  struct Choice {
    std::vector<std::int32_t> source;
    std::vector<std::int64_t> order_start;
    std::vector<std::int32_t> order_txn;
  };

  Choice witness(const History& h) {
    Choice w;
    const auto small = [&](std::int64_t there) {
      return static_cast<std::int32_t>(bytes_.ConsumeIntegralInRange(0, 63) == 0
                                           ? bytes_.ConsumeIntegral<std::int32_t>()
                                           : bytes_.ConsumeIntegralInRange<std::int64_t>(-1, there));
    };
    const std::int64_t sources = flag() ? number(h.operations()) : h.operations();
    for (std::int64_t i = 0; i < std::min<std::int64_t>(sources, 64); ++i) w.source.push_back(small(h.transactions()));
    w.order_start.push_back(bytes_.ConsumeIntegralInRange(0, 31) == 0 ? number(2) : 0);
    for (std::int32_t k = 0; k < h.n_keys(); ++k) {
      for (int i = bytes_.ConsumeIntegralInRange(0, 4); i > 0; --i) w.order_txn.push_back(small(h.transactions()));
      const auto end = static_cast<std::int64_t>(w.order_txn.size());
      w.order_start.push_back(bytes_.ConsumeIntegralInRange(0, 31) == 0 ? number(end) : end);
    }
    return w;
  }

  std::vector<RefutationStep> refutation(const History& h, const Checks& checks) {
    const std::int64_t n = h.transactions(), ops = h.operations(), keys = h.n_keys();
    std::vector<RefutationStep> steps;
    while (bytes_.remaining_bytes() > 0 && steps.size() < 64) {
      RefutationStep step{};
      step.kind = static_cast<StepKind>(bytes_.ConsumeIntegralInRange(0, 5));
      switch (step.kind) {
        case StepKind::anomaly:
          step.numbers = {number(12), number(n), number(ops), number(n), number(ops)};
          break;
        case StepKind::choice:
          step.numbers = {number(ops)};
          break;
        case StepKind::order:
          step.numbers = {number(keys)};
          for (int i = bytes_.ConsumeIntegralInRange(0, 4); i > 0; --i) step.numbers.push_back(number(n));
          break;
        case StepKind::cycle:
          step.check = flag() ? checks.front().name : checks.back().name;
          for (int i = bytes_.ConsumeIntegralInRange(0, 6); i > 0; --i) {
            const int relation = bytes_.ConsumeIntegralInRange(-1, kRelations - 1);
            step.edges.push_back({relation, number(n), number(n), number(keys), number(ops), number(n)});
          }
          break;
        case StepKind::rup:
          for (int i = bytes_.ConsumeIntegralInRange(0, 5); i > 0; --i) {
            const bool positive = flag();
            const auto kind = static_cast<LiteralKind>(bytes_.ConsumeIntegralInRange(0, 2));
            const std::int64_t x = number(kind == LiteralKind::source ? ops : std::max(n, keys));
            step.literals.push_back({positive, kind, x, number(n), number(n)});
          }
          break;
        case StepKind::exhaustion:
          break;
      }
      steps.push_back(std::move(step));
    }
    return steps;
  }

 private:
  void operation(History& h, const std::array<std::int32_t, 3>& keys, int position) {
    // The history has two registers and a list, because readers never mix both kinds of a key.
    const std::size_t k = bytes_.ConsumeIntegralInRange<std::size_t>(0, 2);
    const bool writes = flag(), ok = bytes_.ConsumeIntegralInRange(0, 31) != 0;
    const auto atom = [&] {
      const int value = bytes_.ConsumeIntegralInRange(0, 4);
      return value == 0 ? kNil : h.values.intern_integer(value);
    };
    if (k < 2) {
      const int what = writes ? 1 : bytes_.ConsumeIntegralInRange(0, 15);
      if (what >= 12) {
        std::vector<std::int32_t> set;
        for (int i = bytes_.ConsumeIntegralInRange(0, 3); i > 0; --i) set.push_back(atom());
        h.add_op(what >= 14 ? OpKind::read_one_of : OpKind::read_none_of, keys[k], h.add_list(set), position, ok);
        return;
      }
      const bool unknown = what == 0;
      h.add_op(writes ? OpKind::write : OpKind::read, keys[k], unknown ? kUnknownValue : atom(), position, ok);
    } else if (writes) {
      h.add_op(OpKind::append, keys[k], h.values.intern_integer(10 + elements_++), position, ok);
    } else {
      std::vector<std::int32_t> list;
      for (int i = bytes_.ConsumeIntegralInRange(0, 4); i > 0; --i)
        list.push_back(h.values.intern_integer(10 + bytes_.ConsumeIntegralInRange(0, 5)));
      h.add_op(OpKind::read_list, keys[k], h.add_list(list), position, ok);
    }
  }

  // Adds a predicate read, with the rows that it returned and the rows that it missed.
  void predicate_read(History& h, const std::array<std::int32_t, 3>& keys, int position) {
    h.begin_statement("", position, flag() ? 1 : 0);
    for (std::size_t k = 0; k < 2; ++k) {
      const int what = bytes_.ConsumeIntegralInRange(0, 3);
      const std::int32_t value = h.values.intern_integer(bytes_.ConsumeIntegralInRange(1, 4));
      if (what == 0) h.add_op(OpKind::read, keys[k], value, position);
      if (what == 1) h.add_op(OpKind::read, keys[k], kNil, position);
      if (what == 2) h.add_op(OpKind::read_none_of, keys[k], h.add_list({value}), position);
    }
    h.end_statement();
  }

  // Adds consistent random times: in program order, each answer comes after all requests that were sent before it.
  void add_times(History& h) {
    std::size_t s = 0;
    for (std::int32_t t = 0; t < h.transactions(); ++t) {
      std::int64_t latest = h.txn_begin[t];
      const auto span = [&](auto set) {
        const std::int64_t begin = bytes_.ConsumeIntegralInRange<std::int64_t>(0, 20);
        latest = std::max(latest, begin);
        set(begin, latest + bytes_.ConsumeIntegralInRange<std::int64_t>(0, 5));
      };
      for (std::int64_t op = h.op_start[t]; op <= h.op_start[t + 1]; ++op) {
        for (; s < h.statement_start.size() && h.statement_txn[s] == t && h.statement_start[s] <= op; ++s)
          span([&](std::int64_t begin, std::int64_t end) { h.set_statement_times(s, begin, end); });
        if (op < h.op_start[t + 1] && !h.in_statement(op))
          span([&](std::int64_t begin, std::int64_t end) { h.set_operation_times(op, begin, end); });
      }
      span([&](std::int64_t begin, std::int64_t end) { h.set_commit_times(t, begin, end); });
      if (h.txn_end[t] != kTimeUnknownEnd) h.txn_end[t] = std::max(h.txn_end[t], latest);
    }
  }

  FuzzedDataProvider bytes_;
  std::int64_t elements_ = 0;
};

template <typename Check>
bool accepts(Check&& check) {
  try {
    check();
    return true;
  } catch (const Rejected& rejected) {
    if (rejected.reason.empty()) std::abort();  // a rejection must have a reason
  } catch (const NotCertified& reason) {
    if (reason.reason.empty()) std::abort();
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const History history = input.history();
  history.validate();
  Budget budget;
  bool valid = false, invalid = false;
  const Checks wild = kTarget == "expression" ? input.wild_checks() : Checks{};
  const Checks& checks = kTarget == "expression" ? wild : input.checks();
  if (kTarget != "refutation") {
    const auto [source, start, order] = input.witness(history);
    valid = accepts([&] { verify_witness(history, checks, source, start, order, budget); });
  }
  if (kTarget != "witness") {
    const std::vector<RefutationStep> steps = input.refutation(history, checks);
    invalid = accepts([&] { verify_refutation(history, checks, steps, budget); });
  }
  if (valid && invalid) std::abort();
  return 0;
}
