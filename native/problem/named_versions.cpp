// Finds reads that name the version they saw but return a value other than that version's.
//
// A version has one value. It is the value of its write or, for the initial version, the declared value of T0. Without
// a declaration, the first read that names the initial version determines its value. A read of nil may name the initial
// version, whatever value this version has, unless that value replaces nil.
#include "core/index.hpp"
#include "problem/prepass.hpp"

namespace isolang::prepass {
namespace {

constexpr auto kOptional = static_cast<std::uint8_t>(Inclusion::optional);

class NamedReads {
 public:
  NamedReads(const History& h, const Scan& s, const Candidates& c,
             const std::vector<std::uint8_t>& inclusion)
      : h_(h), s_(s), c_(c), inclusion_(inclusion) {}

  NamedVersions compare() {
    for (std::size_t r = 0; r < s_.read_op.size(); ++r) {
      const std::int64_t op = s_.read_op[r];
      const std::int32_t value = h_.op_value[op];
      if (h_.op_source[op] == kSourceByValue || h_.kind(op) != OpKind::read ||
          inclusion_[s_.read_txn[r]] == 0)
        continue;
      const Candidates::Range& range = c_.range[r];
      if ((range.flags & kFromT0) != 0) {
        if (value != kNil || !h_.nil_is_initial(s_.read_key[r])) compare_with_initial(r);
      } else if (range.low < range.high && value != h_.as_read(h_.op_value[h_.op_source[op]])) {
        report(r, h_.op_source[op]);
      }
    }
    compare_with_each_other();
    return std::move(out_);
  }

 private:
  void compare_with_initial(std::size_t r) {
    const std::int32_t key = s_.read_key[r], initial = h_.initial_value[key];
    const std::int64_t op = s_.read_op[r];
    if (initial == kNil) {
      undeclared_.push_back(r);
    } else if (h_.op_value[op] != h_.as_read(initial)) {
      report(r, h_.op_source[op] >= 0 ? h_.op_source[op] : -1);
    }
  }

  // Compares the reads of one key that name an initial version, if nothing else determines its value. The first such
  // read by a transaction that is included under every choice determines the value; otherwise, the first such read
  // overall.
  void compare_with_each_other() {
    std::vector<std::int64_t> first(undeclared_.empty() ? 0 : idx(h_.n_keys()), -1);
    for (const bool optional : {false, true})
      for (const std::size_t r : undeclared_) {
        if ((inclusion_[s_.read_txn[r]] == kOptional) != optional) continue;
        std::int64_t& told = first[s_.read_key[r]];
        if (told < 0) told = static_cast<std::int64_t>(r);
      }
    std::vector<std::int64_t> own(first.size(), -1);  // the transaction's first such read of the key
    for (const std::size_t r : undeclared_) {
      const std::int32_t t = s_.read_txn[r], key = s_.read_key[r];
      if (own[key] < 0 || s_.read_txn[idx(own[key])] != t) own[key] = static_cast<std::int64_t>(r);
      const auto told = idx(first[key]), mine = idx(own[key]);
      if (value_of(r) != value_of(mine)) {
        report(r, s_.read_op[mine]);
      } else if (value_of(r) != value_of(told)) {
        if (inclusion_[s_.read_txn[told]] == kOptional) {
          refuse(r, told);
        } else {
          report(r, s_.read_op[told]);
        }
      }
    }
  }

  std::int32_t value_of(std::size_t r) const { return h_.op_value[s_.read_op[r]]; }

  void report(std::size_t r, std::int64_t other_op) {
    out_.anomalies.push_back({AnomalyKind::two_values, s_.read_txn[r], s_.read_op[r],
                              other_op < 0 ? -1 : txn_of_op(h_, other_op), other_op});
  }

  // Refuses the history, because either of the two transactions may have taken place, and `Problem` cannot express "not
  // both".
  void refuse(std::size_t r, std::size_t other) {
    const std::string message =
        "key " + key_text(h_, s_.read_key[r]) + ": " + op_text(h_, s_.read_op[other]) +
        " read the initial version as " + value_text(h_, value_of(other)) + " and " +
        op_text(h_, s_.read_op[r]) + " as " + value_text(h_, value_of(r)) +
        ", and whether either took place is unknown; expected one value";
    out_.refusals.push_back({s_.read_txn[r], false, message});
  }

  const History& h_;
  const Scan& s_;
  const Candidates& c_;
  const std::vector<std::uint8_t>& inclusion_;
  NamedVersions out_;
  std::vector<std::size_t> undeclared_;  // entries of Scan::read_*
};

}  // namespace

NamedVersions compare_named_versions(const History& h, const Scan& s, const Candidates& c,
                                     const std::vector<std::uint8_t>& inclusion) {
  if (!s.any_source) return {};
  return NamedReads(h, s, c, inclusion).compare();
}

}  // namespace isolang::prepass
