// The Python class `Columns`: the columns of a history, the methods of a history, and pickling.
// `each_column` calls a function for all columns in a fixed order, so that saving and restoring a history always cover
// the same columns.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include "bindings/bindings.hpp"
#include "core/faults.hpp"
#include "core/implicit.hpp"
#include "core/large_pages.hpp"
#include "core/observed.hpp"
#include "core/append.hpp"
#include "core/part.hpp"
#include "core/versions.hpp"
#include "readers/before.hpp"
#include "readers/predicates.hpp"
#include "readers/serial_order.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

// Returns (kind, payload), from which Python creates its Value type. The payload is None, an int or a str.
nb::tuple atom(const Atoms& atoms, std::int32_t i) {
  if (i < 0 || i >= atoms.size()) throw nb::index_error("no such atom");
  const auto kind = static_cast<int>(atoms.kind(i));
  switch (atoms.kind(i)) {
    case AtomKind::nil:
      return nb::make_tuple(kind, nb::none());
    case AtomKind::integer:
      return nb::make_tuple(kind, atoms.number(i));
    case AtomKind::natural:
      return nb::make_tuple(kind, static_cast<std::uint64_t>(atoms.number(i)));
    default: {
      const auto text = atoms.text(i);
      return nb::make_tuple(kind, nb::str(text.data(), text.size()));
    }
  }
}

// Returns two numbers for each missed row: predicate read and key.
NumberArray rows_of(const std::vector<Missed>& missed) {
  std::vector<std::int32_t> rows;
  for (const Missed& m : missed) rows.insert(rows.end(), {m.statement, m.key});
  return owned_numbers(std::move(rows), 2);
}

// Calls f with each column, in a fixed order.
template <typename H, typename F>
void each_column(H& h, F f) {
  f(h.txn_session), f(h.txn_status), f(h.txn_begin), f(h.txn_end), f(h.txn_number);
  f(h.txn_position), f(h.txn_file), f(h.op_start), f(h.op_kind), f(h.op_ok), f(h.op_key);
  f(h.op_value), f(h.op_source), f(h.op_position), f(h.list_start), f(h.list_values);
  f(h.key_atom), f(h.initial_value), f(h.initial_alone);
  f(h.op_begin), f(h.op_end), f(h.commit_begin), f(h.commit_end), f(h.slack);
  f(h.statement_start), f(h.statement_end), f(h.statement_txn), f(h.statement_predicate);
  f(h.statement_known), f(h.statement_position), f(h.statement_sent), f(h.statement_answered);
  f(h.txn_own_end), f(h.txn_group), f(h.op_version);
  f(h.labels.set_of), f(h.labels.set_start), f(h.labels.set_names);
  f(h.levels.set_of), f(h.levels.set_start), f(h.levels.set_names);
}

nb::tuple state_of(const Atoms& atoms) {
  nb::list texts;
  std::vector<std::uint8_t> kinds;
  std::vector<std::int64_t> numbers;
  for (std::int32_t i = 0; i < atoms.size(); ++i) {
    kinds.push_back(static_cast<std::uint8_t>(atoms.kind(i)));
    numbers.push_back(atoms.number(i));
    if (atoms.kind(i) < AtomKind::string) continue;
    const auto text = atoms.text(i);
    texts.append(nb::bytes(text.data(), text.size()));
  }
  return nb::make_tuple(nb::bytes(kinds.data(), kinds.size()),
                        nb::bytes(numbers.data(), numbers.size() * sizeof(std::int64_t)), texts);
}

template <typename T>
std::vector<T> numbers_of(nb::handle given) {
  const auto bytes = nb::cast<nb::bytes>(given);
  if (bytes.size() % sizeof(T) != 0) throw nb::value_error("a column of half a number");
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// Restores the atoms. They get the same numbers as before, because they are interned in the same order.
void restore(Atoms& atoms, nb::handle state) {
  const auto kinds = numbers_of<std::uint8_t>(state[0]);
  const auto numbers = numbers_of<std::int64_t>(state[1]);
  nb::object texts = state[2];
  if (kinds.empty() || kinds.size() != numbers.size()) throw nb::value_error("no atoms");
  std::size_t text = 0;
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    std::int32_t atom = 0;
    const auto kind = static_cast<AtomKind>(kinds[i]);
    if (kind == AtomKind::integer) {
      atom = atoms.intern_integer(numbers[i]);
    } else if (kind == AtomKind::natural) {
      atom = atoms.intern_natural(static_cast<std::uint64_t>(numbers[i]));
    } else {
      const auto bytes = nb::cast<nb::bytes>(texts[text++]);
      atom = atoms.intern_text(kind, {bytes.c_str(), bytes.size()});
    }
    if (atom != static_cast<std::int32_t>(i)) throw nb::value_error("an atom that is there twice");
  }
}

template <typename T>
void put_numbers(std::vector<T>& column, std::vector<T> numbers) {
  column = std::move(numbers);
}
template <typename Column, typename T>
void put_numbers(Column& column, std::vector<T> numbers) {
  column.assign(std::move(numbers));
}

nb::tuple state_of(const History& h) {
  nb::list columns;
  each_column(h, [&](const auto& column) {
    const auto& numbers = numbers_in(column);
    columns.append(nb::bytes(numbers.data(), numbers.size() * sizeof(numbers[0])));
  });
  return nb::make_tuple(h.sessions, h.has_time, columns, state_of(h.key_atoms), state_of(h.values),
                        state_of(h.groups), state_of(h.versions), h.versions_ordered, h.labels.texts, h.levels.texts,
                        h.predicates, h.deleted, h.two_clocks);
}

void restore(History& h, const nb::tuple& state) {
  nb::object columns = state[2];
  std::size_t i = 0;
  each_column(h, [&](auto& column) {
    using Number = std::remove_cvref_t<decltype(numbers_in(column)[0])>;
    put_numbers(column, numbers_of<Number>(columns[i++]));
  });
  h.sessions = nb::cast<std::int32_t>(state[0]);
  h.has_time = nb::cast<bool>(state[1]);
  restore(h.key_atoms, state[3]);
  restore(h.values, state[4]);
  restore(h.groups, state[5]);
  restore(h.versions, state[6]);
  h.versions_ordered = nb::cast<bool>(state[7]);
  h.labels.texts = nb::cast<std::vector<std::string>>(state[8]);
  h.levels.texts = nb::cast<std::vector<std::string>>(state[9]);
  h.predicates = nb::cast<std::vector<std::string>>(state[10]);
  h.deleted = nb::cast<std::int32_t>(state[11]);
  // States pickled before this field existed do not contain it. In such histories, the times of operations did not
  // bound the begins and ends of transactions.
  h.two_clocks = nb::len(state) > 12 ? nb::cast<bool>(state[12]) : h.has_operation_times();
  // Numbers the keys again in the same order. Each atom of a key occurs once.
  const std::vector<std::int32_t> atoms = std::move(h.key_atom), initial = std::move(h.initial_value);
  h.key_atom.clear();
  h.initial_value.clear();
  if (atoms.size() != initial.size()) throw nb::value_error("keys without initial values");
  for (std::size_t k = 0; k < atoms.size(); ++k) {
    if (atoms[k] < 0 || atoms[k] >= h.key_atoms.size()) throw nb::index_error("no such atom");
    h.key_of(atoms[k], initial[k]);
  }
  h.validate();
  h.renumber_predicates();
  h.labels.renumber();
  h.levels.renumber();
}

// Returns the names of each set.
nb::list names_of_sets(const Names& names) {
  nb::list out;
  for (std::int32_t s = 0; s < names.sets(); ++s) {
    nb::list one;
    for (const std::int32_t name : names.names_of(s)) one.append(names.texts[static_cast<std::size_t>(name)]);
    out.append(nb::tuple(one));
  }
  return out;
}

void assign_names(Names& names, std::int32_t txn, std::int32_t transactions, const std::vector<std::string>& given) {
  if (txn < 0 || txn >= transactions) throw nb::index_error("no such transaction");
  std::vector<std::int32_t> numbers;
  for (const std::string& name : given) numbers.push_back(names.number_of(name));
  names.assign_set(txn, names.set_of_names(std::move(numbers)));
}

}  // namespace

void register_history(nb::module_& m) {
  m.def(
      "arm_faults", &faults::arm, "allocation"_a = 0, "poll"_a = 0,
      "For tests: this allocation fails, and from this poll on the deadline has passed; 0: none.");
  m.def(
      "disarm_faults",
      [] {
        faults::disarm();
        return nb::make_tuple(faults::allocations.load(), faults::polls.load());
      },
      "Ends that; how many allocations and polls there were.");
  m.def("reserve_heap_in_large_pages", &reserve_heap_in_large_pages, "size"_a,
        "So much of the heap in large pages, not given back between stages; for processes of our "
        "own.");
  m.def("trim_heap", &trim_heap, nb::call_guard<nb::gil_scoped_release>(),
        "Gives free pages inside the heap back to the system.");
  auto c =
      nb::class_<History>(m, "Columns", "The columns of a history; see native/core/history.hpp.");
  c.def(nb::init<>());
  c.def("transactions", &History::transactions).def("operations", &History::operations);
  c.def("statements", [](const History& h) { return h.statement_start.size(); },
        "How many predicate reads there are.");
  c.def("n_keys", &History::n_keys);
  c.def("appends", [](const History& h, std::int32_t key) {
    std::vector<std::int64_t> ops;
    for (std::size_t op = 0; op < h.op_kind.size(); ++op)
      if (h.op_key[op] == key && h.op_kind[op] == static_cast<std::uint8_t>(OpKind::append))
        ops.push_back(static_cast<std::int64_t>(op));
    return ops;
  }, "key"_a, "The operations that append to a key's list.");
  c.def_ro("sessions", &History::sessions).def_rw("has_time", &History::has_time);
  c.def_prop_ro("has_operation_times", &History::has_operation_times);
  c.def_ro("two_clocks", &History::two_clocks, "Whether operations have another clock than begins and ends.");
  c.def("contradicting_times", [](const History& h) -> std::optional<std::pair<std::int32_t, std::string>> {
    const auto found = h.contradicting_times();
    if (!found) return std::nullopt;
    return std::pair(found->txn, found->what);
  }, "A transaction whose times contradict the order of its operations, and how.");
  c.def_prop_ro("has_groups", &History::has_groups);
  c.def_prop_ro("has_versions", &History::has_versions);
  c.def_rw("versions_ordered", &History::versions_ordered);
#define ISOLANG_COLUMN(name) def_column(c, #name, &History::name)
  ISOLANG_COLUMN(txn_session);
  ISOLANG_COLUMN(txn_status);
  ISOLANG_COLUMN(txn_begin);
  ISOLANG_COLUMN(txn_end);
  ISOLANG_COLUMN(txn_number);
  ISOLANG_COLUMN(txn_position);
  ISOLANG_COLUMN(txn_file);
  ISOLANG_COLUMN(txn_group);
  ISOLANG_COLUMN(op_start);
  ISOLANG_COLUMN(op_kind);
  ISOLANG_COLUMN(op_ok);
  ISOLANG_COLUMN(op_key);
  ISOLANG_COLUMN(op_value);
  ISOLANG_COLUMN(op_source);
  ISOLANG_COLUMN(op_position);
  ISOLANG_COLUMN(op_version);
  ISOLANG_COLUMN(op_begin);
  ISOLANG_COLUMN(op_end);
  ISOLANG_COLUMN(commit_begin);
  ISOLANG_COLUMN(commit_end);
  ISOLANG_COLUMN(slack);
  ISOLANG_COLUMN(list_start);
  ISOLANG_COLUMN(list_values);
  ISOLANG_COLUMN(statement_start);
  ISOLANG_COLUMN(statement_end);
  ISOLANG_COLUMN(statement_txn);
  ISOLANG_COLUMN(statement_predicate);
  ISOLANG_COLUMN(statement_known);
  ISOLANG_COLUMN(statement_position);
  ISOLANG_COLUMN(statement_sent);
  ISOLANG_COLUMN(statement_answered);
  ISOLANG_COLUMN(key_atom);
  ISOLANG_COLUMN(initial_value);
  ISOLANG_COLUMN(initial_alone);
#undef ISOLANG_COLUMN
  c.def_prop_ro("txn_labels", [](nb::handle self) { return view(nb::cast<const History&>(self).labels.set_of, self); });
  c.def_prop_ro("txn_levels", [](nb::handle self) { return view(nb::cast<const History&>(self).levels.set_of, self); });
  c.def_prop_ro("label_sets", [](const History& h) { return names_of_sets(h.labels); });
  c.def_prop_ro("level_sets", [](const History& h) { return names_of_sets(h.levels); });
  c.def("set_labels", [](History& h, std::int32_t txn, const std::vector<std::string>& names) {
    assign_names(h.labels, txn, h.transactions(), names);
  });
  c.def("set_level", [](History& h, std::int32_t txn, const std::string& name) {
    assign_names(h.levels, txn, h.transactions(), {name});
  });
  c.def("key", [](const History& h, std::int32_t k) {
    if (k < 0 || k >= h.n_keys()) throw nb::index_error("no such key");
    return atom(h.key_atoms, h.key_atom[static_cast<std::size_t>(k)]);
  });
  c.def("value", [](const History& h, std::int32_t v) { return atom(h.values, v); });
  c.def("version", [](const History& h, std::int32_t v) { return atom(h.versions, v); });
  c.def("group", [](const History& h, std::int32_t g) { return atom(h.groups, g); });
  // Returns the kinds and numbers of all atoms, for callers that examine many.
  const auto kinds = [](const Atoms& atoms) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(atoms.size()));
    for (std::int32_t i = 0; i < atoms.size(); ++i)
      out[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(atoms.kind(i));
    return owned_numbers(std::move(out));
  };
  const auto numbers = [](const Atoms& atoms) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(atoms.size()));
    for (std::int32_t i = 0; i < atoms.size(); ++i) out[static_cast<std::size_t>(i)] = atoms.number(i);
    return owned_numbers(std::move(out));
  };
  c.def("key_kinds", [kinds](const History& h) { return kinds(h.key_atoms); });
  c.def("key_numbers", [numbers](const History& h) { return numbers(h.key_atoms); });
  c.def("value_kinds", [kinds](const History& h) { return kinds(h.values); });
  c.def("value_numbers", [numbers](const History& h) { return numbers(h.values); });
  c.def("n_values", [](const History& h) { return h.values.size(); });

  // Functions that build a history, for readers that need not be fast and for users with their own data.
  const auto intern = [](Atoms& atoms, int kind, nb::handle payload) -> std::int32_t {
    switch (static_cast<AtomKind>(kind)) {
      case AtomKind::nil:
        return kNil;
      case AtomKind::integer:
        return atoms.intern_integer(nb::cast<std::int64_t>(payload));
      case AtomKind::natural:
        return atoms.intern_natural(nb::cast<std::uint64_t>(payload));
      case AtomKind::string:
      case AtomKind::keyword:
      case AtomKind::other:
        return atoms.intern_text(static_cast<AtomKind>(kind), nb::cast<std::string>(payload));
    }
    throw nb::value_error("unknown atom kind");
  };
  c.def(
      "intern_value",
      [intern](History& h, int kind, nb::object payload) {
        return intern(h.values, kind, payload);
      },
      "kind"_a, "payload"_a.none());
  c.def(
      "intern_key",
      [intern](History& h, int kind, nb::object payload, std::int32_t initial) {
        return h.key_of(intern(h.key_atoms, kind, payload), initial);
      },
      "kind"_a, "payload"_a.none(), "initial"_a = kNil);
  c.def(
      "begin_transaction",
      [](History& h, std::int32_t session, int status, std::int64_t number, std::int64_t position,
         std::int32_t file, std::int64_t begin, std::int64_t end) {
        if (session < 0 || status < 0 || status > 3)
          throw nb::value_error("session or status out of range");
        return h.begin_transaction(session, static_cast<Status>(status), number, position, file,
                                   begin, end);
      },
      "session"_a, "status"_a, "number"_a, "position"_a, "file"_a = 0, "begin"_a = kTimeUnknownBegin,
      "end"_a = kTimeUnknownEnd);
  c.def(
      "add_op",
      [](History& h, int kind, std::int32_t key, std::int32_t value, std::int64_t position, bool ok,
         std::int64_t source) {
        if (h.transactions() == 0) throw nb::value_error("no transaction begun");
        h.add_op(static_cast<OpKind>(kind), key, value, position, ok, source);
      },
      "kind"_a, "key"_a, "value"_a, "position"_a, "ok"_a = true, "source"_a = kSourceByValue);
  c.def(
      "operation_at",
      [](const History& h, std::int32_t txn, std::int64_t position) {
        if (txn < 0 || txn >= h.transactions()) throw nb::index_error("no such transaction");
        const auto ops = std::views::iota(h.op_start[idx(txn)], h.op_start[idx(txn) + 1]);
        const auto position_of = [&](std::int64_t op) { return h.op_position[idx(op)]; };
        const auto at = std::ranges::lower_bound(ops, position, {}, position_of);
        if (at == ops.end() || position_of(*at) != position) throw nb::index_error("no such operation");
        return *at;
      },
      "txn"_a, "position"_a, "The number of an operation, where positions ascend in each transaction.");
  c.def_ro("predicates", &History::predicates).def_ro("deleted", &History::deleted);
  c.def("deleted_atom", &History::deleted_atom);
  c.def(
      "begin_statement",
      [](History& h, const std::string& predicate, std::int64_t position, bool known) {
        if (h.transactions() == 0) throw nb::value_error("no transaction begun");
        h.begin_statement(predicate.empty() ? predicate : canonical_predicate(predicate), position,
                          known ? 1 : 0);
      },
      "predicate"_a, "position"_a, "known"_a = true,
      "The operations that are added now are one predicate read; the text is a form in EDN.");
  c.def("end_statement", [](History& h) {
    if (h.statement_end.empty()) throw nb::value_error("no statement begun");
    h.end_statement();
  });
  c.def(
      "forget_statements",
      [](History& h, std::int32_t txn) {
        for (std::size_t s = 0; s < h.statement_txn.size(); ++s)
          if (h.statement_txn[s] == txn) h.statement_known[s] = 0;
      },
      "txn"_a, "What the predicate reads of a transaction returned is not known.");
  // Turns a PredicateError into an exception whose message consists of the transaction, the position and the fault.
  const auto with_position = [](auto&& body) {
    try {
      nb::gil_scoped_release released;
      return body();
    } catch (const PredicateError& e) {
      throw std::invalid_argument(std::to_string(e.txn) + " " + std::to_string(e.position) + " " + e.what);
    }
  };
  c.def_prop_ro("implicit", [](const History& h) { return is_implicit(h); });
  c.def("lower_predicates", [with_position](History& h) { with_position([&] { lower_predicates(h); }); });
  c.def("implied", [with_position](const History& h) {
    return with_position([&] {
      std::optional<History> copy(h);
      return leave_implicit(*copy) ? copy : std::nullopt;
    });
  }, "With implicit set-reads; nothing if some predicate cannot be judged of some row.");
  c.def("written_out", [with_position](const History& h) {
    return with_position([&] {
      History copy(h);
      write_out_all(copy);
      return copy;
    });
  }, "With all set-reads of predicate reads as operations.");
  c.def("of_its_keys", [with_position](const History& h) {
    return with_position([&] {
      History copy(h);
      for (std::uint8_t& known : copy.statement_known)
        if (known == kPart) known = 1;
      lower_predicates(copy);
      return copy;
    });
  }, "With each part of a predicate read as a predicate read about the keys of this history.");
  c.def("with_set_reads", [with_position](const History& h, PredicateRows missed) {
    return with_position([&] {
      std::vector<Missed> all;
      for (std::size_t i = 0; i < missed.shape(0); ++i) all.push_back({missed(i, 0), missed(i, 1)});
      History copy(h);
      write_out(copy, all);
      return copy;
    });
  }, "missed"_a, "With these as operations: predicate reads and keys, ascending.");
  c.def("missed_by", [with_position](const History& h, Array<std::int32_t> statements, std::int64_t most) {
    return rows_of(with_position([&] { return missed_by(h, {statements.data(), statements.shape(0)}, most); }));
  }, "statements"_a, "most"_a, "All implicit set-reads of these predicate reads, of the first ones if they are too many.");
  c.def("nearly_decided", [with_position](const History& h, std::int64_t most) {
    return rows_of(with_position([&] { return nearly_decided(h, most); }));
  }, "most"_a, "The implicit set-reads that at most one version of their key satisfies, of the first ones if they are too many.");
  c.def("without_reads", [](const History& h, Array<std::int64_t> ops) {
    History copy(h);
    for (std::size_t i = 0; i < ops.shape(0); ++i) {
      if (ops(i) < 0 || ops(i) >= h.operations()) throw nb::index_error("no such operation");
      copy.op_ok.set(idx(ops(i)), 0);
      if (const std::int32_t s = h.statement_of(ops(i)); s >= 0) copy.statement_known[s] = kPart;
    }
    return copy;
  }, "ops"_a, "With these reads as operations that failed; what else their predicate reads say stays as it is.");
  c.def("replay", [with_position](const History& h, Array<std::int32_t> commits, Array<std::int64_t> seen,
                                  Array<std::int64_t> rows) {
    if (seen.shape(0) != h.statement_start.size()) throw nb::value_error("seen: one entry per predicate read");
    Replay found = with_position([&] {
      for (std::size_t i = 0; i < commits.shape(0); ++i)
        if (commits(i) < 0 || commits(i) >= h.transactions()) throw std::invalid_argument("no such transaction");
      for (std::size_t i = 0; i < rows.shape(0); ++i)
        if (rows(i) < 0 || rows(i) >= h.operations()) throw std::invalid_argument("no such operation");
      return replay(h, {commits.data(), commits.shape(0)}, {seen.data(), seen.shape(0)}, {rows.data(), rows.shape(0)});
    });
    return nb::make_tuple(rows_of(found.missed), rows_of(found.returned), owned_numbers(std::move(found.source)));
  }, "commits"_a, "seen"_a, "rows"_a,
     "What predicate reads see by an order of commits: the implicit set-reads that a matching row contradicts and the "
     "returned rows that another row contradicts (predicate reads and keys, ascending), and the sources of the rows.");
  c.def("serial_order_near",
        [with_position](const History& h, Array<std::int32_t> near, double seconds) -> nb::object {
    for (std::size_t i = 0; i < near.shape(0); ++i)
      if (near(i) < 0 || near(i) >= h.transactions()) throw nb::index_error("no such transaction");
    Budget budget = interruptible_budget(seconds);
    auto found = with_position([&] { return serial_order_near(h, {near.data(), near.shape(0)}, budget); });
    if (!found) return nb::none();
    return nb::make_tuple(owned_numbers(std::move(found->commits)), owned_numbers(std::move(found->source)));
  }, "near"_a, "seconds"_a = 0.0,
     "A serial order near this one in which each read sees what it returned, and the sources of the reads; None if "
     "none is found.");
  c.def("most_operations", [](const History& h) {
    std::int64_t most = 0;
    for (std::int32_t t = 0; t < h.transactions(); ++t) most = std::max(most, h.op_start[idx(t) + 1] - h.op_start[idx(t)]);
    return most;
  }, "The number of operations of the longest transaction.");
  c.def("observes_other_sessions", [](const History& h, Array<std::int32_t> source, Array<std::int64_t> order_start,
                                      Array<std::int32_t> order_txn) {
    return observes_other_sessions(h, {{source.data(), source.shape(0)},
                                       {order_start.data(), order_start.shape(0)},
                                       {order_txn.data(), order_txn.shape(0)}});
  }, "source"_a, "order_start"_a, "order_txn"_a,
     "Whether some read returned or missed the write of another session, by these sources and version orders.");
  c.def("add_list", &History::add_list, "atoms"_a);
  c.def("set_operation_times", [](History& h, std::int64_t op, std::int64_t begin, std::int64_t end) {
    if (op < 0 || op >= h.operations()) throw nb::index_error("no such operation");
    h.set_operation_times(op, begin, end);
  });
  c.def("set_statement_times", [](History& h, std::int64_t s, std::int64_t begin, std::int64_t end) {
    if (s < 0 || s >= static_cast<std::int64_t>(h.statement_start.size()))
      throw nb::index_error("no such predicate read");
    h.set_statement_times(static_cast<std::size_t>(s), begin, end);
  });
  c.def("set_commit_times", [](History& h, std::int32_t txn, std::int64_t begin, std::int64_t end) {
    if (txn < 0 || txn >= h.transactions()) throw nb::index_error("no such transaction");
    h.set_commit_times(txn, begin, end);
  });
  c.def(
      "set_group",
      [intern](History& h, std::int32_t txn, int kind, nb::object payload) {
        if (txn < 0 || txn >= h.transactions()) throw nb::index_error("no such transaction");
        h.set_group(txn, intern(h.groups, kind, payload));
      },
      "txn"_a, "kind"_a, "payload"_a.none());
  c.def(
      "set_version",
      [intern](History& h, std::int64_t op, int kind, nb::object payload) {
        if (op < 0 || op >= h.operations()) throw nb::index_error("no such operation");
        h.set_version(op, intern(h.versions, kind, payload));
      },
      "op"_a, "kind"_a, "payload"_a);
  c.def("name_sources", &name_sources,
        "Of each read that states a version, find the write that states the same one.");
  c.def("without_versions", [](const History& h) {
    History copy = h;
    forget_versions(copy);
    return copy;
  }, "A copy in which no operation states a version.");
  c.def("set_source", [](History& h, std::int64_t op, std::int64_t source) {
    if (op < 0 || op >= h.operations()) throw nb::index_error("no such operation");
    h.op_source.set(static_cast<std::size_t>(op), source);
  });
  c.def("set_value", [](History& h, std::int64_t op, std::int32_t value) {
    if (op < 0 || op >= h.operations()) throw nb::index_error("no such operation");
    h.op_value[static_cast<std::size_t>(op)] = value;
  });
  c.def("set_status", [](History& h, std::int32_t txn, int status) {
    if (txn < 0 || txn >= h.transactions() || status < 0 || status > 3)
      throw nb::index_error("no such transaction");
    h.txn_status[static_cast<std::size_t>(txn)] = static_cast<std::uint8_t>(status);
  });
  c.def("split_sessions_by_key", &split_sessions_by_key);
  c.def(
      "set_initial_value",
      [](History& h, std::int32_t key, std::int32_t value, bool alone) {
        if (key < 0 || key >= h.n_keys()) throw nb::index_error("no such key");
        if (value < 0 || value >= h.values.size()) throw nb::index_error("no such value");
        h.set_initial_value(key, value, alone);
      },
      "key"_a, "value"_a, "alone"_a = false, "With `alone`, nil does not name it, too.");
  c.def(
      "begin_list_with",
      [](History& h, std::int32_t key, const std::vector<std::int32_t>& atoms) {
        if (key < 0 || key >= h.n_keys()) throw nb::index_error("no such key");
        begin_list_with(h, key, atoms);
      },
      "key"_a, "atoms"_a);
  c.def("take_unwritten_for_initial", [](History& h) {
    const Before before = take_unwritten_for_initial(h);
    return nb::make_tuple(before.registers, before.lists, before.open);
  });
  c.def("__copy__", [](const History& h) { return h; });
  c.def(
      "widened",
      [](const History& h, const std::vector<std::int64_t>& earlier,
         const std::vector<std::int64_t>& later) {
        if (earlier.size() != static_cast<std::size_t>(h.sessions) || later.size() != earlier.size())
          throw nb::value_error("one number for each session");
        History wide = h;
        wide.widen(earlier, later);
        return wide;
      },
      "earlier"_a, "later"_a,
      "A copy in which each session's begins are so much earlier, and its ends so much later.");
  c.def(
      "append",
      [](History& h, const History& from,
         nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig> transactions,
         nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig> sessions, bool in_flight) {
        if (&h == &from) throw nb::value_error("a history appended to itself");
        if (sessions.size() != static_cast<std::size_t>(from.sessions))
          throw nb::value_error("one number for each session");
        const std::span txns(transactions.data(), transactions.size());
        const std::span of(sessions.data(), sessions.size());
        for (const std::int32_t t : txns)
          if (t < 0 || t >= from.transactions()) throw nb::value_error("transactions out of range");
        for (const std::int32_t s : of)
          if (s < 0) throw nb::value_error("sessions out of range");
        append(h, from, txns, of, in_flight);
      },
      "other"_a, "transactions"_a, "sessions"_a, "in_flight"_a = false,
      "Append transactions of another history; each of its sessions gets the number given here.\n\n"
      "In flight they are as before their outcome was known: indeterminate, their reads unknown.");
  c.def("validate", &History::validate);
  c.def("__getstate__", [](const History& h) { return state_of(h); });
  c.def("__setstate__", [](History& h, const nb::tuple& state) {
    new (&h) History();
    restore(h, state);
  });
  c.def(
      "part",
      [](const History& h,
         nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig> operations,
         nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig> transactions) {
        const auto check = [](auto kept, std::int64_t size, const char* what) {
          for (std::size_t i = 0; i < kept.size(); ++i)
            if (kept[i] < 0 || kept[i] >= size || (i > 0 && kept[i] <= kept[i - 1]))
              throw nb::value_error(what);
        };
        const std::span ops(operations.data(), operations.size());
        const std::span txns(transactions.data(), transactions.size());
        check(ops, h.operations(), "operations out of range or not ascending");
        check(txns, h.transactions(), "transactions out of range or not ascending");
        Part part = part_of(h, ops, txns);
        return std::pair(std::move(part.history), std::move(part.sessions));
      },
      "operations"_a,
      "transactions"_a);
}

}  // namespace isolang
