// `Copy` copies the selected operations of a history, with their statements and labels.
// `split_sessions_by_key` gives the transactions of each session and key a session of their own.
#include "core/part.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/index.hpp"

namespace isolang {
namespace {

// Copies a history operation by operation. Keys, values and sessions get new numbers in order of
// appearance.
class Copy {
 public:
  explicit Copy(const History& whole) : whole_(whole) {
    part_.history.has_time = whole.has_time;
    part_.history.two_clocks = whole.two_clocks;
    part_.history.versions_ordered = whole.versions_ordered;
  }

  void begin(std::int32_t txn) {
    const auto t = idx(txn);
    const auto [session, fresh] =
        sessions_.try_emplace(whole_.txn_session[t], static_cast<std::int32_t>(sessions_.size()));
    if (fresh) part_.sessions.push_back(session->first);
    if (fresh && !whole_.slack.empty())
      part_.history.slack.push_back(whole_.slack[whole_.txn_session[t]]);
    part_.history.begin_transaction(session->second, static_cast<Status>(whole_.txn_status[t]),
                                    whole_.txn_number[t], whole_.txn_position[t], whole_.txn_file[t],
                                    whole_.txn_begin[t], whole_.txn_end[t]);
    if (whole_.has_operation_times())
      part_.history.set_commit_times(part_.history.transactions() - 1, whole_.commit_begin[t],
                                     whole_.commit_end[t]);
    if (whole_.has_groups())
      part_.history.set_group(
          part_.history.transactions() - 1,
          part_.history.groups.intern_from(whole_.groups, whole_.txn_group[t]));
    name(part_.history.labels, whole_.labels, t);
    name(part_.history.levels, whole_.levels, t);
  }

  void add(std::int64_t operation, std::int64_t source) {
    const auto op = idx(operation);
    const auto kind = static_cast<OpKind>(whole_.op_kind[op]);
    const std::int32_t at_key = key(whole_.op_key[op]);
    const std::int32_t seen = whole_.op_value[op];
    const bool has_list = holds_list(kind) && seen != kUnknownValue;
    follow_statement(operation);
    part_.history.add_op(kind, at_key, has_list ? list(seen) : value(seen), whole_.op_position[op],
                         whole_.op_ok[op] != 0, source);
    if (whole_.has_operation_times())
      part_.history.set_operation_times(part_.history.operations() - 1, whole_.op_begin[op],
                                        whole_.op_end[op]);
    if (whole_.version(operation) != kNoVersion)
      part_.history.set_version(
          part_.history.operations() - 1,
          part_.history.versions.intern_from(whole_.versions, whole_.version(operation)));
    if (open_) part_.history.end_statement();
  }

  // A partial predicate read keeps the judgement made in the whole history, because the part lacks
  // other rows that decide which rows match.
  void follow_statement(std::int64_t operation) {
    for (; statement_ < whole_.statement_start.size() &&
           whole_.statement_end[statement_] <= operation;
         ++statement_)
      open_ = false;
    if (statement_ == whole_.statement_start.size() ||
        operation < whole_.statement_start[statement_])
      return;
    const std::int32_t predicate = whole_.statement_predicate[statement_];
    if (!open_) {
      part_.history.begin_statement(
          predicate == kJudged ? std::string_view{} : whole_.predicates[predicate],
          whole_.statement_position[statement_], kPart);
      if (whole_.has_operation_times())
        part_.history.set_statement_times(part_.history.statement_start.size() - 1,
                                          whole_.statement_sent[statement_],
                                          whole_.statement_answered[statement_]);
    }
    open_ = true;
  }

  Part take() { return std::move(part_); }

 private:
  void name(Names& to, const Names& from, std::size_t t) const {
    if (t < from.set_of.size())
      to.assign_set(part_.history.transactions() - 1, to.set_from(from, from.set_of[t]));
  }
  std::int32_t key(std::int32_t number) {
    const auto [known, fresh] = keys_.try_emplace(number, 0);
    if (fresh) {
      const std::int32_t initial = value(whole_.initial_value[number]);
      known->second = part_.history.key_of(
          part_.history.key_atoms.intern_from(whole_.key_atoms, whole_.key_atom[number]), initial);
      if (!whole_.nil_is_initial(number))
        part_.history.set_initial_value(known->second, initial, true);
    }
    return known->second;
  }
  std::int32_t value(std::int32_t atom) {
    if (atom == kUnknownValue) return atom;
    const auto [known, fresh] = values_.try_emplace(atom, 0);
    if (fresh)
      known->second = atom == whole_.deleted
                          ? part_.history.deleted_atom()
                          : part_.history.values.intern_from(whole_.values, atom);
    return known->second;
  }
  std::int32_t list(std::int32_t number) {
    std::vector<std::int32_t> elements;
    for (std::int64_t i = whole_.list_start[number]; i < whole_.list_start[number + 1]; ++i)
      elements.push_back(value(whole_.list_values[i]));
    return part_.history.add_list(elements);
  }

  const History& whole_;
  Part part_;
  std::size_t statement_ = 0;  // the statement that the next operation may belong to
  bool open_ = false;          // whether that statement has begun in the part
  std::unordered_map<std::int32_t, std::int32_t> keys_, values_,
      sessions_;  // numbers of the whole -> numbers of the part
};

}  // namespace

Part part_of(const History& whole, std::span<const std::int64_t> operations,
             std::span<const std::int32_t> transactions) {
  Copy copy(whole);
  auto end = whole.op_start.begin();  // end of the current transaction's operations
  auto kept_txn = transactions.begin();
  for (const std::int64_t op : operations) {
    if (op >= *end) {
      end = std::upper_bound(end, whole.op_start.end(), op);
      const auto txn = static_cast<std::int32_t>(end - whole.op_start.begin()) - 1;
      for (; kept_txn != transactions.end() && *kept_txn < txn; ++kept_txn) copy.begin(*kept_txn);
      if (kept_txn != transactions.end() && *kept_txn == txn) ++kept_txn;
      copy.begin(txn);
    }
    std::int64_t source = whole.op_source[op];
    if (source >= 0) {
      const auto kept = std::ranges::lower_bound(operations, source);
      source =
          kept != operations.end() && *kept == source ? kept - operations.begin() : kSourceMissing;
    }
    copy.add(op, source);
  }
  for (; kept_txn != transactions.end(); ++kept_txn) copy.begin(*kept_txn);
  return copy.take();
}

std::vector<std::int32_t> split_sessions_by_key(History& h) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> split;
  std::vector<std::int32_t> was;
  for (std::int32_t t = 0; t < h.transactions(); ++t) {
    std::int32_t key = -1;
    for (std::int64_t op = h.op_start[t]; op < h.op_start[t + 1]; ++op) {
      const bool initial = h.txn_status[t] == static_cast<std::uint8_t>(Status::initial);
      if (key >= 0 && h.op_key[op] != key && !initial)
        throw std::domain_error("transaction " + std::to_string(h.txn_number[t]) +
                                " has operations on several keys (expected one)");
      key = h.op_key[op];
    }
    const auto [at, fresh] =
        split.try_emplace({h.txn_session[t], key}, static_cast<std::int32_t>(was.size()));
    if (fresh) was.push_back(h.txn_session[t]);
    h.txn_session[t] = at->second;
  }
  h.sessions = static_cast<std::int32_t>(was.size());
  return was;
}

}  // namespace isolang
