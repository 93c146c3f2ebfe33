// Interning of atoms and names, the growth of the optional columns (times, groups, versions), and
// `History::validate`, which checks that all columns of a history fit together. An optional column
// is either empty or has an entry for each transaction or operation.
#include "core/history.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "core/index.hpp"

namespace isolang {
namespace {

std::size_t mix(std::uint64_t x) {  // splitmix64's finaliser: spreads neighbouring integers
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return idx(x ^ (x >> 31));
}

[[noreturn]] void bad(const std::string& what) { throw std::invalid_argument("history: " + what); }

}  // namespace

Atoms::Atoms() : slots_(1024, -1) { add(AtomKind::nil, 0); }

std::int32_t Atoms::add(AtomKind kind, std::int64_t number) {
  kind_.push_back(kind);
  number_.push_back(number);
  return static_cast<std::int32_t>(kind_.size()) - 1;
}

// Returns the slot that holds this number, or the empty slot for it.
std::size_t Atoms::slot(AtomKind kind, std::int64_t number) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = mix(static_cast<std::uint64_t>(number)) & mask;; i = (i + 1) & mask) {
    const std::int32_t atom = slots_[i];
    if (atom < 0) return i;
    const auto index = idx(atom);
    if (number_[index] == number && kind_[index] == kind) return i;
  }
}

std::int32_t Atoms::find_integer(std::int64_t number) const {
  return slots_[slot(AtomKind::integer, number)];
}

std::int32_t Atoms::intern_number(AtomKind kind, std::int64_t number) {
  std::size_t at = slot(kind, number);
  if (slots_[at] >= 0) return slots_[at];
  if (2 * (numbers_ + 1) > slots_.size()) {
    std::vector<std::int32_t> old(slots_.size() * 2, -1);
    old.swap(slots_);
    for (const std::int32_t atom : old) {
      if (atom < 0) continue;
      const auto index = idx(atom);
      slots_[slot(kind_[index], number_[index])] = atom;
    }
    at = slot(kind, number);
  }
  ++numbers_;
  return slots_[at] = add(kind, number);
}

std::int32_t Atoms::intern_integer(std::int64_t number) {
  return intern_number(AtomKind::integer, number);
}

std::int32_t Atoms::intern_natural(std::uint64_t number) {
  if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return intern_integer(static_cast<std::int64_t>(number));
  return intern_number(AtomKind::natural, static_cast<std::int64_t>(number));
}

std::int32_t Atoms::intern_text(AtomKind kind, std::string_view text) {
  std::string key(1, static_cast<char>(kind));
  key += text;
  const auto [it, fresh] = by_text_.try_emplace(std::move(key), 0);
  if (fresh) {
    texts_.emplace_back(text);
    it->second = add(kind, static_cast<std::int64_t>(texts_.size()) - 1);
  }
  return it->second;
}

std::int32_t Atoms::intern_from(const Atoms& other, std::int32_t atom) {
  switch (const AtomKind kind = other.kind(atom)) {
    case AtomKind::nil:
      return kNil;
    case AtomKind::integer:
    case AtomKind::natural:
      return intern_number(kind, other.number(atom));
    default:
      return intern_text(kind, other.text(atom));
  }
}

std::string_view Atoms::text(std::int32_t atom) const { return texts_[number_[atom]]; }

std::string Atoms::name(std::int32_t atom) const {
  switch (kind(atom)) {
    case AtomKind::nil: return "nil";
    case AtomKind::integer: return std::to_string(number(atom));
    case AtomKind::natural: return std::to_string(static_cast<std::uint64_t>(number(atom)));
    case AtomKind::string:
    case AtomKind::keyword:
    case AtomKind::other: break;
  }
  return std::string(text(atom));
}

std::int32_t Names::number_of(std::string_view text) {
  const auto [at, fresh] =
      number_.try_emplace(std::string(text), static_cast<std::int32_t>(texts.size()));
  if (fresh) texts.emplace_back(text);
  return at->second;
}

std::int32_t Names::set_of_names(std::vector<std::int32_t> names) {
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.empty()) return 0;
  const auto [at, fresh] = set_number_.try_emplace(names, sets());
  if (fresh) {
    set_names.insert(set_names.end(), names.begin(), names.end());
    set_start.push_back(static_cast<std::int64_t>(set_names.size()));
  }
  return at->second;
}

std::int32_t Names::set_from(const Names& other, std::int32_t set) {
  std::vector<std::int32_t> names;
  for (const std::int32_t name : other.names_of(set)) names.push_back(number_of(other.texts[idx(name)]));
  return set_of_names(std::move(names));
}

void Names::assign_set(std::int32_t txn, std::int32_t set) {
  if (set == 0 && idx(txn) >= set_of.size()) return;
  if (idx(txn) >= set_of.size()) set_of.resize(idx(txn) + 1, 0);
  set_of[idx(txn)] = set;
}

void Names::validate(std::size_t transactions) const {
  const auto fail = [] { throw std::invalid_argument("history columns: names out of range"); };
  if (set_of.size() > transactions || set_start.size() < 2 || set_start[0] != 0 || set_start[1] != 0 ||
      set_start.back() != static_cast<std::int64_t>(set_names.size()))
    fail();
  for (std::int32_t s = 0; s < sets(); ++s)
    if (set_start[idx(s)] > set_start[idx(s) + 1]) fail();
  for (const std::int32_t name : set_names)
    if (name < 0 || idx(name) >= texts.size()) fail();
  for (const std::int32_t set : set_of)
    if (set < 0 || set >= sets()) fail();
}

void Names::renumber() {
  for (std::size_t i = 0; i < texts.size(); ++i)
    number_.try_emplace(texts[i], static_cast<std::int32_t>(i));
  for (std::int32_t s = 1; s < sets(); ++s) {
    const auto names = names_of(s);
    set_number_.try_emplace(std::vector<std::int32_t>(names.begin(), names.end()), s);
  }
}

std::int32_t History::key_of(std::int32_t atom, std::int32_t initial_atom) {
  const auto index = idx(atom);
  if (index >= key_number_.size()) key_number_.resize(index + 1 + index / 2, -1);
  if (key_number_[index] < 0) {
    key_number_[index] = n_keys();
    key_atom.push_back(atom);
    initial_value.push_back(initial_atom);
  }
  return key_number_[index];
}

std::int32_t History::begin_transaction(std::int32_t session, Status status, std::int64_t number,
                                        std::int64_t position, std::int32_t file,
                                        std::int64_t begin, std::int64_t end) {
  txn_session.push_back(session);
  if (has_groups()) txn_group.push_back(kNil);
  txn_status.push_back(static_cast<std::uint8_t>(status));
  txn_begin.push_back(begin);
  txn_end.push_back(end);
  txn_number.push_back(number);
  txn_position.push_back(position);
  txn_file.push_back(file);
  if (has_operation_times()) make_room_for_times();
  op_start.push_back(operations());
  if (session >= sessions) sessions = session + 1;
  return transactions() - 1;
}

void History::add_op(OpKind kind, std::int32_t key, std::int32_t value, std::int64_t position,
                     bool ok, std::int64_t source) {
  op_kind.push_back(static_cast<std::uint8_t>(kind));
  op_ok.push_back(ok ? 1 : 0);
  op_key.push_back(key);
  op_value.push_back(value);
  op_source.push_back(source);
  op_position.push_back(position);
  if (has_versions()) op_version.push_back(kNoVersion);
  if (has_operation_times()) make_room_for_times();
  op_start.back() = operations();
}

std::int32_t History::statement_of(std::int64_t op) const {
  const auto after = std::ranges::upper_bound(statement_start, op);
  // If several statements start at one operation, all but the last are empty.
  const auto s = static_cast<std::int32_t>(after - statement_start.begin()) - 1;
  return s >= 0 && op < statement_end[s] ? s : -1;
}

std::int32_t History::deleted_atom() {
  if (deleted == kNoAtom) deleted = values.intern_text(AtomKind::other, kDeletedText);
  return deleted;
}

void History::set_initial_value(std::int32_t key, std::int32_t value, bool alone) {
  initial_value[key] = as_read(value);  // if T0 deletes a row, the row does not exist initially
  if (!alone && initial_alone.empty()) return;
  if (idx(key) >= initial_alone.size()) initial_alone.resize(idx(n_keys()), 0);
  initial_alone[key] = alone ? 1 : 0;
}

void History::begin_statement(std::string_view predicate, std::int64_t position,
                              std::uint8_t known) {
  std::int32_t number = kJudged;
  if (!predicate.empty()) {
    const auto [at, fresh] = predicate_number_.try_emplace(
        std::string(predicate), static_cast<std::int32_t>(predicates.size()));
    if (fresh) predicates.emplace_back(predicate);
    number = at->second;
  }
  statement_start.push_back(operations());
  statement_end.push_back(operations());
  statement_txn.push_back(transactions() - 1);
  statement_predicate.push_back(number);
  statement_known.push_back(known);
  statement_position.push_back(position);
  if (has_operation_times()) make_room_for_times();
}

void History::renumber_predicates() {
  predicate_number_.clear();
  for (std::size_t i = 0; i < predicates.size(); ++i)
    predicate_number_.emplace(predicates[i], static_cast<std::int32_t>(i));
}

void History::drop_statement() {
  for (auto* column : {&statement_start, &statement_end, &statement_position}) column->pop_back();
  for (auto* column : {&statement_txn, &statement_predicate}) column->pop_back();
  statement_known.pop_back();
  for (auto* column : {&statement_sent, &statement_answered})
    if (!column->empty()) column->pop_back();
}

void History::make_room_for_times() {
  op_begin.resize(op_kind.size(), kTimeUnknownBegin);
  op_end.resize(op_kind.size(), kTimeUnknownEnd);
  statement_sent.resize(statement_start.size(), kTimeUnknownBegin);
  statement_answered.resize(statement_start.size(), kTimeUnknownEnd);
  commit_begin.resize(txn_session.size(), kTimeUnknownBegin);
  commit_end.resize(txn_session.size(), kTimeUnknownEnd);
}

void History::set_operation_times(std::int64_t op, std::int64_t begin, std::int64_t end) {
  make_room_for_times();
  op_begin[op] = begin;
  op_end[op] = end;
}

void History::set_statement_times(std::size_t s, std::int64_t begin, std::int64_t end) {
  make_room_for_times();
  statement_sent[s] = begin;
  statement_answered[s] = end;
  for (std::int64_t op = statement_start[s]; op < statement_end[s]; ++op)
    set_operation_times(op, begin, end);
}

void History::set_commit_times(std::int32_t txn, std::int64_t begin, std::int64_t end) {
  make_room_for_times();
  commit_begin[txn] = begin;
  commit_end[txn] = end;
}

void History::set_group(std::int32_t txn, std::int32_t group) {
  txn_group.resize(txn_session.size(), kNil);
  txn_group[txn] = group;
}

void History::set_version(std::int64_t op, std::int32_t version) {
  op_version.resize(op_kind.size(), kNoVersion);
  op_version[idx(op)] = version;
}

void History::widen(const std::vector<std::int64_t>& earlier,
                    const std::vector<std::int64_t>& later) {
  const auto begin_before = [](std::int64_t time, std::int64_t by) {
    return time == kTimeUnknownBegin || __builtin_sub_overflow(time, by, &time) ? kTimeUnknownBegin : time;
  };
  const auto end_after = [](std::int64_t time, std::int64_t by) {
    return time == kTimeUnknownEnd || __builtin_add_overflow(time, by, &time) ? kTimeUnknownEnd : time;
  };
  slack.resize(idx(sessions), 0);
  for (std::size_t s = 0; s < slack.size(); ++s) slack[s] += earlier[s] + later[s];
  for (std::int32_t t = 0; t < transactions(); ++t) {
    const std::int64_t before = earlier[txn_session[t]], after = later[txn_session[t]];
    txn_begin.set(idx(t), begin_before(txn_begin[t], before));
    txn_end.set(idx(t), end_after(txn_end[t], after));
    if (!has_operation_times()) continue;
    commit_begin[t] = begin_before(commit_begin[t], before);
    commit_end[t] = end_after(commit_end[t], after);
    for (std::int64_t op = op_start[t]; op < op_start[t + 1]; ++op) {
      op_begin[op] = begin_before(op_begin[op], before);
      op_end[op] = end_after(op_end[op], after);
    }
  }
  for (std::size_t s = 0; s < statement_sent.size(); ++s) {
    const std::int32_t session = txn_session[statement_txn[s]];
    statement_sent[s] = begin_before(statement_sent[s], earlier[session]);
    statement_answered[s] = end_after(statement_answered[s], later[session]);
  }
}

void History::reserve_operations(std::size_t n) {
  op_kind.reserve(n);
  op_key.reserve(n);
  op_value.reserve(n);
}

std::int32_t History::add_list(const std::vector<std::int32_t>& atoms) {
  list_values.insert(list_values.end(), atoms.begin(), atoms.end());
  list_start.push_back(static_cast<std::int64_t>(list_values.size()));
  return static_cast<std::int32_t>(list_start.size()) - 2;
}

// Goes through the operations of each transaction in program order and compares the time of each
// answer with the latest sending time before it.
std::optional<History::Contradiction> History::contradicting_times() const {
  if (!has_operation_times()) return std::nullopt;
  constexpr std::int64_t kWhole = -1, kCommit = 0;  // special positions; operations count from 1
  const auto name = [](std::int64_t place) -> std::string {
    if (place == kWhole) return "the transaction";
    return place == kCommit ? "COMMIT" : "operation " + std::to_string(place);
  };
  std::size_t s = 0;
  for (std::int32_t t = 0; t < transactions(); ++t) {
    std::int64_t latest = two_clocks ? kTimeUnknownBegin : txn_begin[t], latest_place = kWhole;
    std::int64_t place = 0;
    std::optional<Contradiction> found;
    const auto did = [&](std::int64_t of, std::int64_t begin, std::int64_t end) {
      if (begin > latest) latest = begin, latest_place = of;
      if (end >= latest || found) return;
      found = {t, name(of) + (of == kWhole ? " ended at " : " was answered at ") + std::to_string(end) + ", before " +
                      name(latest_place) + (latest_place == kWhole ? " began at " : " was sent at ") +
                      std::to_string(latest)};
    };
    for (std::int64_t op = op_start[t]; op <= op_start[t + 1]; ++op) {
      for (; s < statement_txn.size() && statement_txn[s] == t && statement_start[s] <= op; ++s)
        did(++place, statement_sent[s], statement_answered[s]);
      const bool inside = s > 0 && statement_txn[s - 1] == t && op < statement_end[s - 1];
      if (op < op_start[t + 1] && !inside) did(++place, op_begin[op], op_end[op]);
    }
    did(kCommit, commit_begin[t], commit_end[t]);
    if (!two_clocks) did(kWhole, kTimeUnknownBegin, txn_end[t]);
    if (found) return found;
  }
  return std::nullopt;
}

void History::validate() const {
  const std::size_t n = txn_session.size(), m = op_kind.size();
  if (txn_status.size() != n || txn_begin.size() != n || txn_end.size() != n ||
      txn_number.size() != n || txn_position.size() != n || txn_file.size() != n ||
      op_start.size() != n + 1)
    bad("the transaction columns differ in length");
  if (op_ok.size() != m || op_key.size() != m || op_value.size() != m || op_source.size() != m ||
      op_position.size() != m || op_start.front() != 0 ||
      op_start.back() != static_cast<std::int64_t>(m))
    bad("the operation columns differ in length");
  const bool timed = has_operation_times();
  if (op_begin.size() != (timed ? m : 0) || op_end.size() != op_begin.size() ||
      commit_begin.size() != (timed ? n : 0) || commit_end.size() != commit_begin.size())
    bad("the columns of times differ in length");
  if (has_groups() && txn_group.size() != n) bad("the column of groups differs in length");
  for (const std::int32_t group : txn_group)
    if (group < 0 || group >= groups.size()) bad("group out of range");
  labels.validate(n);
  levels.validate(n);
  for (std::size_t op = 0; op < op_begin.size(); ++op)
    if (op_begin[op] > op_end[op]) bad("an operation ends before it begins");
  for (std::size_t t = 0; t < commit_begin.size(); ++t)
    if (commit_begin[t] > commit_end[t]) bad("COMMIT is answered before it is sent");
  for (std::size_t t = 0; t < n; ++t) {
    if (op_start[t] > op_start[t + 1]) bad("op_start decreases");
    if (txn_status[t] > 3) bad("unknown status");
    if (txn_session[t] < 0 || txn_session[t] >= sessions) bad("session out of range");
  }
  if (initial_alone.size() > key_atom.size()) bad("initial values of more keys than there are");
  const auto lists = static_cast<std::int32_t>(list_start.size()) - 1;
  for (std::size_t i = 0; i < m; ++i) {
    if (op_kind[i] >= kOpKinds) bad("unknown operation kind");
    if (op_key[i] < 0 || op_key[i] >= n_keys()) bad("key out of range");
    const auto kind = static_cast<OpKind>(op_kind[i]);
    if (op_value[i] >= (holds_list(kind) ? lists : values.size()) ||
        op_value[i] < (is_write(kind) ? 0 : kUnknownValue))
      bad("value out of range");
    if (is_set_read(kind) && op_source[i] != kSourceByValue) bad("a set-read that names its source");
    if (op_source[i] < kSourceMissing || op_source[i] >= static_cast<std::int64_t>(m))
      bad("source out of range");
  }
  if (has_versions() && op_version.size() != m) bad("the column of versions differs in length");
  for (std::size_t op = 0; op < op_version.size(); ++op) {
    const std::int32_t version = op_version[op];
    if (version < kNoVersion || version >= versions.size() || version == kNil)
      bad("version out of range");
    if (version != kNoVersion && !states_version(static_cast<OpKind>(op_kind[op])))
      bad("a version of a list or of a set-read");
    if (version != kNoVersion && versions_ordered && versions.kind(version) != AtomKind::integer)
      bad("versions that are ordered and no integers");
  }
  if (!slack.empty() && slack.size() != idx(sessions)) bad("a clock error of other sessions");
  if (deleted != kNoAtom && (deleted < 0 || deleted >= values.size())) bad("a deletion that writes no value");
  const std::size_t statements = statement_start.size();
  if (statement_end.size() != statements || statement_txn.size() != statements ||
      statement_predicate.size() != statements || statement_known.size() != statements ||
      statement_position.size() != statements)
    bad("the statement columns differ in length");
  if (statement_sent.size() != (timed ? statements : 0) ||
      statement_answered.size() != statement_sent.size())
    bad("the columns of times differ in length");
  for (std::size_t s = 0; s < statements; ++s) {
    if (statement_txn[s] < 0 || idx(statement_txn[s]) >= n) bad("a statement of no transaction");
    const std::int64_t start = statement_start[s], end = statement_end[s];
    if (start < op_start[statement_txn[s]] || end < start || end > op_start[statement_txn[s] + 1] ||
        (s > 0 && (start < statement_end[s - 1] || statement_txn[s] < statement_txn[s - 1])))
      bad("a statement out of order");
    if (statement_predicate[s] < kJudged ||
        statement_predicate[s] >= static_cast<std::int32_t>(predicates.size()))
      bad("a statement without its predicate");
    if (timed && statement_sent[s] > statement_answered[s])
      bad("a predicate read ends before it begins");
    for (std::int64_t op = start; op < end; ++op) {
      if (is_write(this->kind(op))) bad("a write in a predicate read");
      if (timed && (op_begin[op] != statement_sent[s] || op_end[op] != statement_answered[s]))
        bad("a row with other times than its predicate read");
    }
  }
  if (const auto contradiction = contradicting_times())
    bad(contradiction->what);
}

}  // namespace isolang
