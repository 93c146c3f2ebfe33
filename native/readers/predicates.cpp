// `lower_predicates` collects the rows ever held by the keys of each table, evaluates every predicate read on them, and
// appends a set-read for each matching row that was not returned. An index of the columns avoids comparing every
// predicate with every row.
#include "readers/predicates.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "core/implicit.hpp"
#include "core/index.hpp"
#include "core/required.hpp"
#include "readers/predicate.hpp"
#include "readers/rows_in_time.hpp"

namespace isolang {
namespace predicates {
namespace {

// The rows ever held by the keys of one table, with an index for each column used by predicates.
class Table {
 public:
  struct Version {
    std::int32_t key, value;
    const Row* row;
  };
  std::vector<Version> versions;  // ascending
  std::unordered_map<std::int32_t, Cell> cell_of_key;

  template <typename Visit>
  void matching(const Predicate& p, const Visit& visit) {
    const auto test = [&](const Version& v) {
      if (matches(p.where, *v.row, cell_of_key.at(v.key))) visit(v);
    };
    const auto b = bounds(p.where);
    if (!b) {
      for (const Version& v : versions) test(v);
      return;
    }
    const Index& index = index_of(b->column);
    const auto first = std::ranges::lower_bound(index.sorted, b->low, {}, &Entry::first),
               last = std::ranges::upper_bound(index.sorted, b->high, {}, &Entry::first);
    for (auto i = first; i < last; ++i) test(versions[i->second]);
    for (const std::size_t i : index.others) test(versions[i]);
  }

 private:
  using Entry = std::pair<double, std::size_t>;
  struct Index {
    std::vector<Entry> sorted;       // rows with a number in the column
    std::vector<std::size_t> others;  // rows with a text, or with something that will be refused
  };
  const Index& index_of(std::string_view column) {
    const auto [at, fresh] = indexes_.try_emplace(std::string(column));
    if (!fresh) return at->second;
    for (std::size_t i = 0; i < versions.size(); ++i) {
      const Cell* const cell = predicates::column(*versions[i].row, cell_of_key.at(versions[i].key), column);
      if (cell != nullptr && cell->kind == Cell::Kind::number)
        at->second.sorted.emplace_back(cell->number, i);
      else if (cell == nullptr || cell->kind != Cell::Kind::null)
        at->second.others.push_back(i);
    }
    std::ranges::sort(at->second.sorted);
    return at->second;
  }
  std::map<std::string, Index, std::less<>> indexes_;
};

bool may_be_included(const History& h, std::int32_t t) {
  return h.txn_status[t] == static_cast<std::uint8_t>(Status::committed) ||
         h.txn_status[t] == static_cast<std::uint8_t>(Status::indeterminate);
}

class Lowering {
 public:
  explicit Lowering(History& h) : h_(h), rows_(h), key_texts_(idx(h.n_keys())) {
    for (std::int32_t k = 0; k < h.n_keys(); ++k) key_texts_[k] = text_of(h.key_atoms, h.key_atom[k]);
    collect_versions();
    added_.resize(h_.statement_start.size());
  }

  void lower(std::int64_t most) {
    const auto listed = [&] { return static_cast<std::ptrdiff_t>(h_.list_values.size()); };
    each_statement([&](std::size_t s) { judge_returned(s); });
    const auto lists = static_cast<std::ptrdiff_t>(h_.list_start.size());
    const auto atoms = static_cast<std::ptrdiff_t>(h_.list_values.size());
    bool implicit = false;
    each_statement([&](std::size_t s) {
      if (!implicit) miss_all(s);
      if (implicit || most == kNever || (set_reads_ <= most && listed() - atoms <= kRowsEach * most)) return;
      if (!decided()) {
        most = kNever;
        return;
      }
      implicit = true;
      h_.list_start.resize(idx(lists));
      h_.list_values.resize(idx(atoms));
      for (auto& added : added_) added.clear();
    });
    if (implicit) each_statement([&](std::size_t s) { miss_own(s); });
    // Remove what an earlier lowering added, because T0 may hold different rows now.
    rebuild([&](std::int64_t op) { return !is_missed(op); });
    set_implicit(implicit);
  }

  void write_out(std::span<const Missed> missed) {
    auto next = missed.begin();
    each_statement([&](std::size_t s) {
      for (; next != missed.end() && idx(next->statement) == s; ++next) miss(s, next->key);
    });
    if (next != missed.end()) refuse("a set-read of no predicate read that is judged here, or of none in order");
    rebuild([](std::int64_t) { return true; });
  }

  void write_out_all() {
    each_statement([&](std::size_t s) { miss_all(s); });
    rebuild([&](std::int64_t op) { return !is_missed(op); });
    set_implicit(false);
  }

  std::vector<Missed> missed_by(std::span<const std::int32_t> statements, std::int64_t most) {
    std::vector<Missed> found;
    each_statement([&](std::size_t s) {
      if (!std::ranges::binary_search(statements, static_cast<std::int32_t>(s)) || most <= 0) return;
      const std::vector<std::int32_t> spoken = keys_of_other_operations(s);
      std::vector<std::int32_t> keys;
      table_of(s).matching(predicate_of(s), [&](const Table::Version& v) {
        if (!std::ranges::binary_search(spoken, v.key)) keys.push_back(v.key);
      });
      std::ranges::sort(keys);
      const auto repeated = std::ranges::unique(keys);
      keys.erase(repeated.begin(), repeated.end());
      keys.resize(std::min(keys.size(), static_cast<std::size_t>(most)));
      most -= static_cast<std::int64_t>(keys.size());
      for (const std::int32_t key : keys) found.push_back({static_cast<std::int32_t>(s), key});
    });
    return found;
  }

  std::vector<Missed> nearly_decided(std::int64_t most) {
    const auto by_key = last_writes();
    std::map<const Table*, Table> few;  // a few rows of each key
    std::vector<Missed> found;
    each_statement([&](std::size_t s) {
      if (std::ssize(found) >= most) return;
      const Table& of = table_of(s);
      const auto [at, fresh] = few.try_emplace(&of);
      if (fresh) {
        at->second.cell_of_key = of.cell_of_key;
        for (const auto& [key, cell] : of.cell_of_key) {
          int rows = 0;
          for (const LastWrite& w : by_key[key])
            // SOUND BECAUSE if all rows of a key but one match, and the reader's own row is disregarded, then one of
            // three matches.
            if (w.value != kNoAtom && rows++ < 3) at->second.versions.push_back({key, w.value, &rows_.of(w.value)});
        }
      }
      const Predicate& p = predicate_of(s);
      const std::vector<std::int32_t> spoken = keys_of_other_operations(s);
      std::vector<std::int32_t> keys;
      at->second.matching(p, [&](const Table::Version& v) {
        if (!std::ranges::binary_search(spoken, v.key)) keys.push_back(v.key);
      });
      std::ranges::sort(keys);
      const auto repeated = std::ranges::unique(keys);
      keys.erase(repeated.begin(), repeated.end());
      for (const std::int32_t key : keys) {
        int candidates = 0;
        for (const LastWrite& w : by_key[key]) {
          if (w.txn == h_.statement_txn[s]) continue;
          candidates += w.value == kNoAtom || !matches(p.where, rows_.of(w.value), of.cell_of_key.at(key)) ? 1 : 0;
          if (candidates > 1) break;
        }
        if (candidates <= 1 && std::ssize(found) < most) found.push_back({static_cast<std::int32_t>(s), key});
      }
    });
    return found;
  }

  bool leave_implicit() {
    each_statement([](std::size_t) {});  // parses all tables
    if (!decided()) return false;
    each_statement([&](std::size_t s) { miss_own(s); });
    rebuild([&](std::int64_t op) { return !is_missed(op); });
    set_implicit(true);
    return true;
  }

  Replay replay(std::span<const std::int32_t> commits, std::span<const std::int64_t> seen,
                std::span<const std::int64_t> returned_rows) {
    std::map<const Table*, std::unique_ptr<RowsInTime>> now;
    std::vector<std::size_t> asked;
    each_statement([&](std::size_t s) {
      if (seen[s] < 0) return;
      asked.push_back(s);
      auto& rows = now[&table_of(s)];
      if (rows == nullptr) rows = std::make_unique<RowsInTime>(rows_, table_of(s).cell_of_key);
      rows->prepare(predicate_of(s));
    });
    const auto put = [&](std::int32_t key, std::int32_t value) {
      for (auto& [table, rows] : now)
        if (rows->holds_key(key)) rows->put(key, value);
    };
    for (std::int32_t k = 0; k < h_.n_keys(); ++k) put(k, h_.initial_value[k] == kNil ? kNoAtom : h_.initial_value[k]);
    std::ranges::stable_sort(asked, {}, [&](std::size_t s) { return seen[s]; });
    // The current row of each key, as returned by reads, and the transaction that wrote it.
    std::vector<std::int32_t> row(h_.initial_value), writer(row.size(), h_.transactions());
    Replay found;
    found.source.assign(returned_rows.size(), -1);
    std::size_t done = 0;
    for (const std::size_t s : asked) {
      for (; done < commits.size() && done < idx(seen[s]); ++done) {
        const std::int32_t t = commits[done];
        for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
          if (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0) {
            const std::int32_t key = h_.op_key[op];
            put(key, h_.op_value[op] == h_.deleted ? kNoAtom : h_.op_value[op]);
            row[idx(key)] = h_.as_read(h_.op_value[op]);
            writer[idx(key)] = t;
          }
      }
      for (auto at = std::ranges::lower_bound(returned_rows, h_.statement_start[s]);
           at != returned_rows.end() && *at < h_.statement_end[s]; ++at) {
        const auto key = idx(h_.op_key[*at]);
        if (row[key] == h_.op_value[*at])
          found.source[idx(at - returned_rows.begin())] = writer[key];
        else
          found.returned.push_back({static_cast<std::int32_t>(s), h_.op_key[*at]});
      }
      const std::vector<std::int32_t> spoken = keys_of_other_operations(s);
      now.at(&table_of(s))->each_match(predicate_of(s), [&](std::int32_t key) {
        if (!std::ranges::binary_search(spoken, key)) found.missed.push_back({static_cast<std::int32_t>(s), key});
      });
    }
    std::ranges::sort(found.missed);
    std::ranges::sort(found.returned);
    return found;
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kRowsEach = 4;  // the mean number of matching rows for each set-read
  struct Added {
    std::int32_t key, list;
  };

  bool is_known(std::size_t s) const { return h_.statement_known[s] == 1 || h_.statement_known[s] == kImplicit; }
  void set_implicit(bool implicit) {
    for (std::size_t s = 0; s < h_.statement_known.size(); ++s)
      if (is_known(s) && h_.statement_predicate[s] != kJudged) h_.statement_known[s] = implicit ? kImplicit : 1;
  }

  // Visits the statements that this pass judges.
  template <typename Visit>
  void each_statement(const Visit& visit) {
    for (std::size_t s = 0; s < h_.statement_start.size(); ++s) {
      if (!is_known(s) || h_.statement_predicate[s] == kJudged || !may_be_included(h_, h_.statement_txn[s]))
        continue;
      bool failed = false;
      for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op) failed |= h_.op_ok[op] == 0;
      if (failed) continue;
      try {
        auto& p = predicates_[h_.statement_predicate[s]];
        if (!p) p = parse_predicate(h_.predicates[idx(h_.statement_predicate[s])]);
        table(p->table);
        visit(s);
      } catch (const std::invalid_argument& e) {
        throw PredicateError{h_.statement_txn[s], h_.statement_position[s], e.what()};
      }
    }
  }
  const Predicate& predicate_of(std::size_t s) { return required(predicates_.at(h_.statement_predicate[s]), "the predicate of a statement"); }
  Table& table_of(std::size_t s) { return table(predicate_of(s).table); }

  // How predicates use a column, and the numbers with which they compare it.
  struct Asked {
    bool order = false, rest = false, real = false, large = false;
    void meet(const Cell& cell) {
      real |= cell.real;
      large |= cell.whole && (cell.integer < -kExact || cell.integer > kExact);
    }
  };
  static constexpr __int128 kExact = __int128{1} << 53;  // every integer up to this one is exact as a float
  using AskedOf = std::map<std::pair<const Table*, std::string_view>, Asked>;

  // Returns whether each predicate can be decided for every row, however databases compare numbers.
  bool decided() {
    each_statement([](std::size_t) {});
    AskedOf asked;
    for (const auto& [number, p] : predicates_)
      if (!ask(p->where, tables_.at(p->table).get(), asked)) return false;
    return std::ranges::all_of(asked, [](auto& entry) {
      const auto& [of, name] = entry.first;
      Asked& a = entry.second;
      for (const Table::Version& v : of->versions) {
        const Cell* const cell = column(*v.row, of->cell_of_key.at(v.key), name);
        if (cell == nullptr || cell->kind == Cell::Kind::odd || (a.order && cell->kind == Cell::Kind::text) ||
            (a.rest && cell->kind == Cell::Kind::number && !cell->whole))
          return false;
        a.meet(*cell);
      }
      return !a.real || !a.large;
    });
  }
  static bool ask(const Node& n, const Table* of, AskedOf& asked) {
    if (!n.column.empty()) {
      Asked& a = asked[{of, n.column}];
      a.order |= n.test != Test::null && n.test != Test::equal && n.test != Test::unequal;
      a.rest |= n.test == Test::mod;
      for (const Cell& cell : n.cells) {
        if (cell.kind == Cell::Kind::odd) return false;
        if (n.test != Test::mod) a.meet(cell);
      }
    }
    return std::ranges::all_of(n.parts, [&](const Node& part) { return ask(part, of, asked); });
  }

  struct LastWrite {
    std::int32_t txn, value;  // value: kNoAtom for no row; txn: -1 for T0
  };
  std::vector<std::vector<LastWrite>> last_writes() const {
    std::vector<std::vector<LastWrite>> of(idx(h_.n_keys()));
    const auto row = [&](std::int32_t value) { return value == kNil || value == h_.deleted ? kNoAtom : value; };
    for (std::int32_t k = 0; k < h_.n_keys(); ++k) of[k].push_back({-1, row(h_.initial_value[k])});
    for (std::int32_t t = 0; t < h_.transactions(); ++t)
      if (may_be_included(h_, t))
        for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
          if (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0) {
            auto& writes = of[h_.op_key[op]];
            if (writes.back().txn != t) writes.push_back({t, kNoAtom});
            writes.back().value = row(h_.op_value[op]);
          }
    return of;
  }

  // Collects every row that may have existed. Values that their own transactions overwrite are collected, too. They do
  // no harm: such a value only adds an entry of its own to the versions that a read excludes.
  void collect_versions() {
    std::vector<std::pair<std::int32_t, std::int32_t>> found;
    for (std::int32_t t = 0; t < h_.transactions(); ++t)
      if (may_be_included(h_, t))
        for (std::int64_t op = h_.op_start[t]; op < h_.op_start[t + 1]; ++op)
          if (h_.kind(op) == OpKind::write && h_.op_ok[op] != 0 && h_.op_value[op] != h_.deleted)
            found.emplace_back(h_.op_key[op], h_.op_value[op]);
    for (std::int32_t k = 0; k < h_.n_keys(); ++k)
      if (h_.initial_value[k] != kNil) found.emplace_back(k, h_.initial_value[k]);
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    all_ = std::move(found);
  }

  Table& table(const std::string& name) {
    auto& table = tables_[name];
    if (table != nullptr) return *table;
    table = std::make_unique<Table>();
    std::vector<std::uint8_t> inside(idx(h_.n_keys()), 0);
    for (std::int32_t k = 0; k < h_.n_keys(); ++k) {
      const auto key = key_in_table(key_texts_[k], name);
      if (!key) continue;
      inside[k] = 1;
      table->cell_of_key[k] = cell_of(*key);
    }
    for (const auto& [key, value] : all_)
      if (inside[key] != 0) table->versions.push_back({key, value, &rows_.of(value)});
    return *table;
  }

  // Turns a returned row that does not match into a read that no write explains.
  void judge_returned(std::size_t s) {
    const Predicate& p = predicate_of(s);
    const Table& of = table_of(s);
    std::vector<std::int32_t> returned;
    for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op) {
      if (is_missed(op)) continue;
      const std::int32_t key = h_.op_key[op];
      returned.push_back(key);
      const auto cell = of.cell_of_key.find(key);
      if (cell == of.cell_of_key.end())
        refuse("a returned row of another table (got " + in_quotes(key_texts_[key]) + ", expected a key [" + p.table + " …])");
      if (h_.kind(op) == OpKind::read && !matches(p.where, rows_.of(h_.op_value[op]), cell->second)) {
        h_.op_kind[op] = static_cast<std::uint8_t>(OpKind::read_one_of);
        h_.op_value[op] = h_.add_list({h_.op_value[op]});
      }
    }
    std::ranges::sort(returned);
    if (const auto twice = std::ranges::adjacent_find(returned); twice != returned.end())
      refuse("a row that was returned twice (got " + in_quotes(key_texts_[*twice]) + ")");
  }

  // Returns, for each key, the value last written by the predicate read's transaction before the
  // read.
  std::map<std::int32_t, std::int32_t> own_writes(std::size_t s) const {
    std::map<std::int32_t, std::int32_t> own;
    for (std::int64_t op = h_.op_start[h_.statement_txn[s]]; op < h_.statement_start[s]; ++op)
      if (is_write(h_.kind(op)) && h_.op_ok[op] != 0) own[h_.op_key[op]] = h_.op_value[op];
    return own;
  }
  std::vector<std::int32_t> returned_by(std::size_t s) const {
    std::vector<std::int32_t> keys;
    for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op)
      if (!is_missed(op)) keys.push_back(h_.op_key[op]);
    std::ranges::sort(keys);
    return keys;
  }
  // Returns the keys for which another operation states what the predicate read saw.
  std::vector<std::int32_t> keys_of_other_operations(std::size_t s) const {
    std::vector<std::int32_t> keys;
    for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op) keys.push_back(h_.op_key[op]);
    for (const auto& [key, value] : own_writes(s)) keys.push_back(key);
    std::ranges::sort(keys);
    return keys;
  }
  bool is_missed(std::int64_t op) const {
    const std::int32_t s = h_.kind(op) == OpKind::read_none_of ? h_.statement_of(op) : -1;
    return s >= 0 && is_known(idx(s)) && h_.statement_predicate[s] != kJudged;
  }

  void add(std::size_t s, std::int32_t key, const std::vector<std::int32_t>& values) {
    added_[s].push_back({key, h_.add_list(values)});
    ++set_reads_;
  }
  void miss_all(std::size_t s) {
    const std::vector<std::int32_t> returned = returned_by(s);
    const auto own = own_writes(s);
    std::vector<std::pair<std::int32_t, std::int32_t>> missed;
    table_of(s).matching(predicate_of(s), [&](const Table::Version& v) {
      if (std::ranges::binary_search(returned, v.key)) return;
      const auto mine = own.find(v.key);
      // mutant: own-rows-missed
      if (mine == own.end() || mine->second == v.value) missed.emplace_back(v.key, v.value);
    });
    std::ranges::sort(missed);
    std::vector<std::int32_t> values;
    for (std::size_t i = 0; i < missed.size(); ++i) {
      values.push_back(missed[i].second);
      if (i + 1 < missed.size() && missed[i + 1].first == missed[i].first) continue;
      add(s, missed[i].first, values);
      values.clear();
    }
  }
  // Adds the set-reads that are decided by a write of the same transaction.
  void miss_own(std::size_t s) {
    const auto own = own_writes(s);
    if (own.empty()) return;
    const std::vector<std::int32_t> returned = returned_by(s);
    const Table& of = table_of(s);
    for (const auto& [key, value] : own) {
      if (std::ranges::binary_search(returned, key)) continue;
      // An element of a list is not a row.
      auto v = std::ranges::lower_bound(of.versions, key, {}, &Table::Version::key);
      while (v != of.versions.end() && v->key == key && v->value != value) ++v;
      if (v != of.versions.end() && v->key == key && matches(predicate_of(s).where, *v->row, of.cell_of_key.at(key)))
        add(s, key, {value});
    }
  }
  void miss(std::size_t s, std::int32_t key) {
    if (std::ranges::binary_search(keys_of_other_operations(s), key))
      refuse("a set-read of a key that is spoken of");
    const Table& of = table_of(s);
    std::vector<std::int32_t> values;
    for (auto v = std::ranges::lower_bound(of.versions, key, {}, &Table::Version::key); v != of.versions.end() && v->key == key; ++v)
      if (matches(predicate_of(s).where, *v->row, of.cell_of_key.at(key))) values.push_back(v->value);
    if (values.empty()) refuse("a set-read of a key that never matched");
    add(s, key, values);
  }

  // Rebuilds the columns from the kept operations and the new ones, which come at the ends of their statements.
  template <typename Keep>
  void rebuild(const Keep& keep) {
    std::vector<std::uint8_t> kept(h_.op_kind.size());
    for (std::size_t op = 0; op < kept.size(); ++op) kept[op] = keep(static_cast<std::int64_t>(op)) ? 1 : 0;
    std::size_t total = static_cast<std::size_t>(std::ranges::count(kept, 1));
    const bool all = total == kept.size();
    for (const auto& added : added_) total += added.size();
    if (all && total == h_.op_kind.size()) return;
    History old;
    std::swap(old.op_kind, h_.op_kind);
    std::swap(old.op_ok, h_.op_ok);
    std::swap(old.op_source, h_.op_source);
    std::swap(old.op_position, h_.op_position);
    for (auto column : {&History::op_key, &History::op_value, &History::op_version}) (old.*column).swap(h_.*column);
    for (auto column : {&History::op_begin, &History::op_end, &History::op_start,
                        &History::statement_start, &History::statement_end})
      (old.*column).swap(h_.*column);
    for (auto column : {&History::op_start, &History::statement_start, &History::statement_end}) h_.*column = old.*column;
    h_.reserve_operations(total);
    std::vector<std::int64_t> now(old.op_kind.size());
    std::size_t s = 0;
    const bool timed = !old.op_begin.empty();
    std::int64_t first = 0;  // the first kept operation of a statement
    const auto add_times = [&](std::int64_t begin, std::int64_t end) {
      h_.op_begin.push_back(begin);
      h_.op_end.push_back(end);
    };
    const auto put = [&](OpKind kind, std::int32_t key, std::int32_t value, std::int64_t source, std::int64_t position, std::uint8_t ok) {
      h_.op_kind.push_back(static_cast<std::uint8_t>(kind));
      h_.op_ok.push_back(ok);
      h_.op_key.push_back(key);
      h_.op_value.push_back(value);
      h_.op_source.push_back(source);
      h_.op_position.push_back(position);
    };
    const auto finish = [&](std::int64_t op, std::int32_t t) {  // finish the statements that end before `op`
      for (; s < added_.size() && h_.statement_txn[s] == t && old.statement_end[s] <= op; ++s) {
        first = 0;
        for (std::int64_t i = old.statement_start[s]; i < old.statement_end[s]; ++i) first += kept[idx(i)];
        h_.statement_start[s] = h_.operations() - first;
        for (const Added& a : added_[s]) {
          put(OpKind::read_none_of, a.key, a.list, kSourceByValue, h_.statement_position[s], 1);
          if (timed) add_times(h_.statement_sent[s], h_.statement_answered[s]);
        }
        h_.statement_end[s] = h_.operations();
      }
    };
    for (std::int32_t t = 0; t < h_.transactions(); ++t) {
      h_.op_start[t] = h_.operations();
      for (std::int64_t op = old.op_start[t]; op < old.op_start[t + 1]; ++op) {
        finish(op, t);
        now[op] = h_.operations();
        if (kept[idx(op)] == 0) continue;
        put(old.kind(op), old.op_key[op], old.op_value[op], old.op_source[op], old.op_position[op], old.op_ok[op]);
        if (!old.op_version.empty() && old.op_version[idx(op)] != kNoVersion)
          h_.set_version(h_.operations() - 1, old.op_version[idx(op)]);
        if (timed) add_times(old.op_begin[op], old.op_end[op]);
      }
      finish(old.op_start[t + 1], t);
    }
    h_.op_start[h_.transactions()] = h_.operations();
    if (!old.op_version.empty()) h_.op_version.resize(h_.op_kind.size(), kNoVersion);
    for (std::size_t op = 0; !h_.op_source.all_default() && op < h_.op_source.size(); ++op)
      if (h_.op_source[op] >= 0) h_.op_source.set(op, now[h_.op_source[op]]);
  }

  History& h_;
  Rows rows_;
  std::vector<std::string> key_texts_;
  std::vector<std::pair<std::int32_t, std::int32_t>> all_;
  std::map<std::string, std::unique_ptr<Table>> tables_;
  std::unordered_map<std::int32_t, std::optional<Predicate>> predicates_;
  std::vector<std::vector<Added>> added_;
  std::int64_t set_reads_ = 0;
};

}  // namespace
}  // namespace predicates

using predicates::Lowering;

std::string canonical_predicate(std::string_view form) {
  const predicates::Predicate p = predicates::parse_predicate(form);
  std::string text = "{";
  if (!p.table.empty()) (text += ":table ") += p.table + " ";
  text += ":where ";
  predicates::show(p.where, text);
  return text += '}';
}

std::string table_of_predicate(std::string_view predicate) {
  return predicates::parse_predicate(predicate).table;
}

void lower_predicates(History& history, std::int64_t most) {
  if (!history.statement_start.empty()) Lowering(history).lower(most);
}

void write_out(History& history, std::span<const Missed> missed) { Lowering(history).write_out(missed); }

void write_out_all(History& history) { Lowering(history).write_out_all(); }

std::vector<Missed> missed_by(const History& history, std::span<const std::int32_t> statements, std::int64_t most) {
  return Lowering(const_cast<History&>(history)).missed_by(statements, most);  // NOLINT
}

std::vector<Missed> nearly_decided(const History& history, std::int64_t most) {
  return Lowering(const_cast<History&>(history)).nearly_decided(most);  // NOLINT
}

bool leave_implicit(History& history) {
  return !history.statement_start.empty() && Lowering(history).leave_implicit();
}

Replay replay(const History& history, std::span<const std::int32_t> commits, std::span<const std::int64_t> seen,
              std::span<const std::int64_t> rows) {
  // The history is not changed.
  return Lowering(const_cast<History&>(history)).replay(commits, seen, rows);  // NOLINT
}

}  // namespace isolang
