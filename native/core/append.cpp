// `append` copies transactions and translates the numbers of their keys, values, sessions, lists
// and names. Equal atoms get equal numbers in the result.
#include "core/append.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/index.hpp"

namespace isolang {
namespace {

class Appender {
 public:
  Appender(History& to, const History& from, std::span<const std::int32_t> sessions, bool in_flight)
      : to_(to), from_(from), sessions_(sessions), in_flight_(in_flight),
        keys_(idx(from.n_keys()), kNone), values_(idx(from.values.size()), kNone) {}

  void transaction(std::int32_t t) {
    Status status = static_cast<Status>(from_.txn_status[t]);
    if (in_flight_ && status != Status::initial) status = Status::indeterminate;
    to_.begin_transaction(sessions_[idx(from_.txn_session[t])], status, from_.txn_number[t],
                          from_.txn_position[t], from_.txn_file[t], from_.txn_begin[t],
                          in_flight_ ? kTimeUnknownEnd : from_.txn_end[t]);
    const std::int32_t here = to_.transactions() - 1;
    std::int64_t op = from_.op_start[t];
    const auto first = std::ranges::lower_bound(from_.statement_txn, t);
    for (auto s = static_cast<std::size_t>(first - from_.statement_txn.begin());
         s < from_.statement_txn.size() && from_.statement_txn[s] == t; ++s) {
      for (; op < from_.statement_start[s]; ++op) operation(op);
      statement(s);
      op = from_.statement_end[s];
    }
    for (; op < from_.op_start[t + 1]; ++op) operation(op);
    if (from_.has_operation_times() && !in_flight_)
      to_.set_commit_times(here, from_.commit_begin[t], from_.commit_end[t]);
    if (from_.has_groups()) to_.set_group(here, to_.groups.intern_from(from_.groups, from_.txn_group[t]));
    name(to_.labels, from_.labels, here, t);
    name(to_.levels, from_.levels, here, t);
  }

 private:
  static constexpr std::int32_t kNone = -3;  // not an atom, and not kUnknownValue

  static void name(Names& to, const Names& from, std::int32_t here, std::int32_t t) {
    if (idx(t) < from.set_of.size()) to.assign_set(here, to.set_from(from, from.set_of[idx(t)]));
  }

  void statement(std::size_t s) {
    const std::int32_t predicate = from_.statement_predicate[s];
    const std::uint8_t known = in_flight_ ? 0 : from_.statement_known[s];
    to_.begin_statement(predicate == kJudged ? std::string_view{} : from_.predicates[idx(predicate)],
                        from_.statement_position[s], known);
    if (known != 0)
      for (std::int64_t op = from_.statement_start[s]; op < from_.statement_end[s]; ++op) operation(op);
    to_.end_statement();
    if (from_.has_operation_times() && !in_flight_)
      to_.set_statement_times(to_.statement_start.size() - 1, from_.statement_sent[s],
                              from_.statement_answered[s]);
  }

  void operation(std::int64_t op) {
    OpKind kind = from_.kind(op);
    std::int32_t seen = from_.op_value[op];
    if (from_.has_versions()) throw std::invalid_argument("operations that state versions");
    if (from_.op_source[op] >= 0)
      throw std::invalid_argument("a read that names the operation which it reads from");
    if (in_flight_ && !is_write(kind)) {
      kind = OpKind::read;
      seen = kUnknownValue;
    }
    if (seen != kUnknownValue) seen = holds_list(kind) ? list(seen) : value(seen);
    to_.add_op(kind, key(from_.op_key[op]), seen, from_.op_position[op], from_.op_ok[op] != 0,
               from_.op_source[op]);
    if (from_.has_operation_times() && !in_flight_)
      to_.set_operation_times(to_.operations() - 1, from_.op_begin[op], from_.op_end[op]);
  }

  std::int32_t key(std::int32_t number) {
    std::int32_t& known = keys_[idx(number)];
    if (known == kNone) {
      known = to_.key_of(to_.key_atoms.intern_from(from_.key_atoms, from_.key_atom[number]));
      if (from_.initial_value[number] != kNil)
        to_.set_initial_value(known, value(from_.initial_value[number]),
                              !from_.nil_is_initial(number));
    }
    return known;
  }
  std::int32_t value(std::int32_t atom) {
    std::int32_t& known = values_[idx(atom)];
    if (known == kNone)
      known = atom == from_.deleted ? to_.deleted_atom() : to_.values.intern_from(from_.values, atom);
    return known;
  }
  std::int32_t list(std::int32_t number) {
    for (std::int64_t i = from_.list_start[number]; i < from_.list_start[number + 1]; ++i)
      to_.list_values.push_back(value(from_.list_values[i]));
    to_.list_start.push_back(static_cast<std::int64_t>(to_.list_values.size()));
    return static_cast<std::int32_t>(to_.list_start.size()) - 2;
  }

  History& to_;
  const History& from_;
  std::span<const std::int32_t> sessions_;
  bool in_flight_;
  std::vector<std::int32_t> keys_, values_;  // numbers of `from` -> numbers of `to`
};

// Allocates room for the transactions in the columns that have an entry for each of them or for each operation. An
// empty history gets exactly this room, because the watch keeps many histories made in this way.
void make_room(History& to, const History& from, std::span<const std::int32_t> transactions) {
  std::size_t operations = 0;
  for (const std::int32_t t : transactions) operations += idx(from.op_start[idx(t) + 1] - from.op_start[idx(t)]);
  const auto room = [](std::size_t more, auto&... columns) {
    const auto reserve = [more](auto& column) {
      const std::size_t size = column.size() + more;
      if (size > column.capacity()) column.reserve(std::max(size, 2 * column.capacity()));
    };
    (reserve(columns), ...);
  };
  room(transactions.size(), to.txn_session, to.txn_status, to.txn_number, to.op_start);
  room(operations, to.op_kind, to.op_key, to.op_value);
}

}  // namespace

void append(History& to, const History& from, std::span<const std::int32_t> transactions,
            std::span<const std::int32_t> sessions, bool in_flight) {
  if (!from.slack.empty() || !to.slack.empty())
    throw std::invalid_argument("times that were widened");
  make_room(to, from, transactions);
  Appender appending(to, from, sessions, in_flight);
  for (const std::int32_t t : transactions) appending.transaction(t);
  to.has_time = to.has_time || from.has_time;
  to.two_clocks = to.two_clocks || from.two_clocks;
}

}  // namespace isolang
