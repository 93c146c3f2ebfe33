// `read_expression` parses the text of a check and computes which positions of letters can come first, last and after
// one another (Glushkov 1961). `machine` turns the positions into an automaton, in which it merges positions with the
// same continuations by partition refinement.
#include "certify/expression.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "core/index.hpp"

namespace isolang::certify {
namespace {

constexpr std::size_t kSearchLimit = 50'000;
constexpr int kDepthLimit = 500;
constexpr std::size_t kPositionLimit = 2'000;

constexpr std::array<std::string_view, kRelations> kNames{
#define RELATION(id, name) name,
#include "core/relations.def"
    "to-write",
    "mere-irw",
#define PART(id, name, whole, reads) name,
#include "core/relations.def"
#define FILTERED(id, name) name "[W,W]", name "[W,R]", name "[R,W]", name "[R,R]",
#include "core/relations.def"
#define TEST(id, name) name,
#include "core/relations.def"
};

// A recursive-descent parser for "(op e …)", names and "id". It computes first, last and follow while it reads.
class Reader {
 public:
  Reader(std::string_view text, std::shared_ptr<const Selections> selections) : text_(text) {
    result_.selections = std::move(selections);
    result_.label.push_back(kNoRelation);
    result_.follow.emplace_back();
  }

  Positions read() {
    const Part whole = part(0);
    if (next() != "") fail();
    result_.follow[0] = whole.first;
    result_.nullable = whole.nullable;
    result_.accepting.assign(result_.label.size(), 0);
    for (const int p : whole.last) result_.accepting[p] = 1;
    for (auto& f : result_.follow) {
      std::sort(f.begin(), f.end());
      f.erase(std::unique(f.begin(), f.end()), f.end());
    }
    return std::move(result_);
  }

 private:
  struct Part {
    bool nullable;
    std::vector<int> first, last;
  };

  [[noreturn]] void fail() const {
    throw NotCertified{"not certified: no expression over so, rt, init, wr, ww, rw: " +
                       std::string(text_.substr(0, 80))};
  }

  // Parses a letter such as wr or wr@0. A label or a level must have a name. Only relations and tests that concern a
  // key may have a name that selects keys.
  int letter(std::string_view word) const {
    const std::size_t at = word.find('@');
    const int relation = relation_of(word.substr(0, at));
    const bool of_transactions = relation == static_cast<int>(Relation::label) ||
                                 relation == static_cast<int>(Relation::level);
    if (at == std::string_view::npos) return of_transactions ? kNoRelation : relation;
    std::size_t name = 0;
    for (const char c : word.substr(at + 1)) {
      if (c < '0' || c > '9' || name > kPositionLimit) return kNoRelation;
      name = 10 * name + idx(c - '0');
    }
    const bool keyed = reads_from(relation) || overwrites(relation) || filtered(relation) ||
                       relation == static_cast<int>(Relation::ww) ||
                       relation == static_cast<int>(Relation::writes) ||
                       relation == static_cast<int>(Relation::reads);
    if (result_.selections == nullptr || name >= result_.selections->count() ||
        !(result_.selections->of_keys(name) ? keyed : of_transactions))
      return kNoRelation;
    return letter_of(relation, static_cast<int>(name));
  }

  std::string_view next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const std::size_t begin = at_;
    if (at_ < text_.size() && (text_[at_] == '(' || text_[at_] == ')')) {
      ++at_;
    } else {
      while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '(' && text_[at_] != ')')
        ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  bool closes() {
    const std::size_t before = at_;
    if (next() == ")") return true;
    at_ = before;
    return false;
  }

  void link(const std::vector<int>& from, const std::vector<int>& to) {
    for (const int p : from) {
      auto& f = result_.follow[p];
      f.insert(f.end(), to.begin(), to.end());
    }
  }

  static void append(std::vector<int>& to, const std::vector<int>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  Part part(int depth) {
    if (depth > kDepthLimit || result_.label.size() > kPositionLimit)
      throw NotCertified{"not certified: the expression of a check is too large"};
    const std::string_view word = next();
    if (word == "id") return {true, {}, {}};
    if (word != "(") {
      const int relation = letter(word);
      if (relation == kNoRelation) fail();
      const int p = static_cast<int>(result_.label.size());
      result_.label.push_back(relation);
      result_.follow.emplace_back();
      return {false, {p}, {p}};
    }
    const std::string_view sign = next();
    if (sign == "|") {
      Part all{false, {}, {}};
      while (!closes()) {
        const Part one = part(depth + 1);
        all.nullable |= one.nullable;
        append(all.first, one.first);
        append(all.last, one.last);
      }
      return all;
    }
    if (sign == ";") {
      Part all{true, {}, {}};
      while (!closes()) {
        Part one = part(depth + 1);
        link(all.last, one.first);
        if (all.nullable) append(all.first, one.first);
        if (one.nullable) {
          append(all.last, one.last);
        } else {
          all.last = std::move(one.last);
        }
        all.nullable = all.nullable && one.nullable;
      }
      return all;
    }
    if (sign != "+" && sign != "*" && sign != "?") fail();
    Part one = part(depth + 1);
    if (!closes()) fail();
    if (sign != "?") link(one.last, one.first);
    if (sign != "+") one.nullable = true;
    return one;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Positions result_;
};

std::vector<int> after(const Positions& a, const std::vector<int>& states, int label) {
  std::vector<int> result;
  for (const int q : states)
    for (const int p : a.follow[q])
      if (a.label[p] == label) result.push_back(p);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool any_accepting(const Positions& a, const std::vector<int>& states) {
  return std::any_of(states.begin(), states.end(), [&](int p) { return a.accepting[p] != 0; });
}

}  // namespace

int relation_of(std::string_view name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? kNoRelation : static_cast<int>(found - kNames.begin());
}

std::string_view name_of(int relation) {
  return relation >= 0 && relation < kRelations ? kNames[idx(relation)] : "?";
}

Positions read_expression(std::string_view text, std::shared_ptr<const Selections> selections) {
  return Reader(text, std::move(selections)).read();
}

bool overwrites(int relation) {
  return relation == static_cast<int>(Relation::rw) || relation == static_cast<int>(Relation::irw) ||
         relation == static_cast<int>(Relation::prw) || relation == static_cast<int>(Relation::mere_irw);
}

bool reads_from(int relation) {
  return relation == static_cast<int>(Relation::wr) || relation == static_cast<int>(Relation::iwr) ||
         relation == static_cast<int>(Relation::pwr);
}

bool is_of(Relation relation, bool of_predicate, bool of_writer) {
  switch (relation) {
    case Relation::mere_irw:
      // mutant: checker-mere-reads-of-writers
      return !of_predicate && !of_writer;
    case Relation::iwr:
    case Relation::irw:
      return !of_predicate;
    case Relation::pwr:
    case Relation::prw:
      return of_predicate;
    default:
      return true;
  }
}

bool Positions::distinguishes_reads() const {
  return mentions(Relation::iwr) || mentions(Relation::pwr) || mentions(Relation::irw) ||
         mentions(Relation::prw) || mentions(Relation::mere_irw);
}

int Positions::letter(int relation, bool of_predicate, bool of_writer) const {
  const auto part = filtered(relation);
  if (part && mentions(part->relation) && !mentions(static_cast<Relation>(relation)))
    return static_cast<int>(part->relation);
  if (!distinguishes_reads()) return relation;
  if (relation == static_cast<int>(Relation::wr))
    // mutant: checker-predicate-sources
    return static_cast<int>(of_predicate ? Relation::pwr : Relation::iwr);
  if (relation != static_cast<int>(Relation::rw)) return relation;
  // mutant: checker-writers-as-mere-readers
  if (!of_predicate && !of_writer && mentions(Relation::mere_irw)) return static_cast<int>(Relation::mere_irw);
  // mutant: checker-predicates-as-items
  return static_cast<int>(of_predicate ? Relation::prw : Relation::irw);
}

bool Positions::mentions(Relation r) const {
  return std::any_of(label.begin(), label.end(),
                     [&](int one) { return relation_of_letter(one) == static_cast<int>(r); });
}

bool Positions::names() const {
  return std::any_of(label.begin(), label.end(), [](int one) { return one >= kRelations; });
}

bool Positions::tests() const { return std::any_of(label.begin(), label.end(), is_test); }

bool Positions::reads(const std::vector<int>& word, bool again, const Passes& passes) const {
  if (word.empty()) return nullable;
  std::vector<int> states{0};
  // Adds the positions that can be reached without leaving the transaction at which letter i
  // begins.
  const auto stay = [&](std::size_t i) {
    std::vector<char> known(label.size(), 0);
    for (const int q : states) known[q] = 1;
    const auto add = [&](int p) {
      if (known[p]++ == 0) states.push_back(p);
    };
    for (std::size_t at = 0; at < states.size(); ++at) {
      const auto q = idx(states[at]);
      if (again && accepting[q]) add(0);
      for (const int p : follow[q])
        if (is_test(label[p]) && passes(i, label[p])) add(p);
    }
  };
  for (std::size_t i = 0; i < word.size(); ++i) {
    stay(i);
    std::vector<int> reached = after(*this, states, word[i]);
    for (const int q : states)
      for (const int p : follow[q])
        // mutant: checker-letter-of-all-keys
        if (label[p] >= kRelations && relation_of_letter(label[p]) == word[i] && !is_test(label[p]) &&
            std::find(reached.begin(), reached.end(), p) == reached.end() && passes(i, label[p]))
          reached.push_back(p);
    states = std::move(reached);
  }
  stay(word.size());
  return any_accepting(*this, states);
}

bool Positions::reads(int relation) const {
  return reads({relation}, false, [](std::size_t, int) { return false; });
}

Positions of_return_paths(Positions p) {
  for (auto& follow : p.follow)
    std::erase_if(follow, [&](int f) { return p.label[f] == static_cast<int>(Relation::init); });
  constexpr int writes = static_cast<int>(Relation::writes),
                reads = static_cast<int>(Relation::reads);
  // Returns the tests among `[W]` and `[R]` that a transaction always passes if an edge of this letter enters it.
  const auto after_letter = [&](int q) {
    const int relation = p.label[q];
    if (relation == kNoRelation || relation == static_cast<int>(Relation::ww) ||
        relation == writes || overwrites(relation))
      return writes;
    return relation == reads || reads_from(relation) ? reads : kNoRelation;
  };
  // Returns the tests among `[W]` and `[R]` that a transaction always passes if an edge of this letter leaves it.
  const auto before_letter = [&](int f) {
    const int relation = p.label[f];
    if (reads_from(relation) || relation == static_cast<int>(Relation::ww)) return writes;
    return overwrites(relation) ? reads : kNoRelation;
  };
  const auto add = [](std::vector<int>& to, int f) {
    if (std::find(to.begin(), to.end(), f) != to.end()) return false;
    to.push_back(f);
    return true;
  };
  const int count = static_cast<int>(p.label.size());
  for (bool grown = true; grown;) {  // add a way around each test that is always passed
    grown = false;
    for (int q = 0; q < count; ++q)
      for (std::size_t i = 0; i < p.follow[q].size(); ++i) {
        const int test = p.follow[q][i];
        if (!is_test(p.label[test])) continue;
        const bool passed = after_letter(q) == p.label[test];
        for (const int f : std::vector(p.follow[test]))
          if (passed || before_letter(f) == p.label[test]) grown |= add(p.follow[q], f);
        if (p.accepting[test] && q > 0 && !p.accepting[q] && (passed || p.label[test] == reads))
          p.accepting[q] = grown = true;
      }
  }
  for (int q = 0; q < count; ++q)
    std::erase_if(p.follow[q], [&](int test) {
      return is_test(p.label[test]) && after_letter(q) == p.label[test];
    });
  for (int test = 1; test < count; ++test) {
    if (!is_test(p.label[test])) continue;
    std::erase_if(p.follow[test], [&](int f) { return before_letter(f) == p.label[test]; });
    if (p.label[test] == reads) p.accepting[test] = 0;
  }
  for (auto& follow : p.follow) {
    std::erase_if(follow, [&](int f) {
      return is_test(p.label[f]) && p.follow[f].empty() && !p.accepting[f];
    });
    std::sort(follow.begin(), follow.end());
  }
  return p;
}

bool Positions::repeatable() const {
  // A search state: which of the two words is being read, the position in that word, and the set of positions of an
  // automaton that reads the two words as one.
  using State = std::tuple<bool, int, std::vector<int>>;
  std::set<State> seen{{false, 0, {0}}};
  std::vector<State> work(seen.begin(), seen.end());
  const auto visit = [&](State s) {
    if (seen.insert(s).second) work.push_back(std::move(s));
  };
  while (!work.empty()) {
    const auto [second, p, whole] = std::move(work.back());
    work.pop_back();
    if (accepting[p] != 0) {
      if (second && !any_accepting(*this, whole)) return false;
      if (!second) visit({true, 0, whole});
    }
    for (const int relation : std::set<int>(label.begin() + 1, label.end())) {
      const std::vector<int> nexts = after(*this, {p}, relation);
      if (nexts.empty()) continue;
      const std::vector<int> whole_after = after(*this, whole, relation);
      for (const int q : nexts) visit({second, q, whole_after});
    }
    if (seen.size() > kSearchLimit) return false;
  }
  return true;
}

bool Machine::silently(int p, int q) const {
  return p == q ||
         (looped && q == 0 && std::find(accepting.begin(), accepting.end(), p) != accepting.end());
}

Machine machine(const Positions& positions, bool looped, bool merged) {
  const std::size_t count = positions.label.size();
  std::vector<int> block(count,
                         0);  // the coarsest partition comes first: the start, accepting positions, all others
  for (std::size_t p = merged ? 0 : 1; p < count; ++p) block[p] = positions.accepting[p] ? 1 : 2;
  for (std::size_t blocks = 0;;) {
    std::map<std::pair<int, std::set<std::pair<int, int>>>, int> numbers;
    std::vector<int> refined(count);
    for (std::size_t p = 0; p < count; ++p) {
      std::set<std::pair<int, int>> future;
      for (const int f : positions.follow[p]) future.insert({positions.label[f], block[f]});
      refined[p] =
          numbers.try_emplace({block[p], std::move(future)}, static_cast<int>(numbers.size()))
              .first->second;
    }
    block = std::move(refined);
    if (numbers.size() == blocks) break;
    blocks = numbers.size();
  }
  Machine result;
  result.looped = looped;
  std::map<int, int> state{{block[0], 0}};
  for (std::size_t p = 1; p < count; ++p) {
    if (state.count(block[p])) continue;
    const bool ends_here = positions.accepting[p] && positions.follow[p].empty();
    state[block[p]] = looped && ends_here ? 0 : result.states++;
  }
  result.selections = positions.selections;
  std::array<std::set<std::tuple<int, int, int>>, kRelations> steps;
  std::set<int> accepting;
  for (std::size_t p = 0; p < count; ++p) {
    const int q = state[block[p]];
    if (positions.accepting[p] && q != 0) accepting.insert(q);
    for (const int f : positions.follow[p]) {
      const int letter = positions.label[f];
      steps[idx(relation_of_letter(letter))].insert({q, state[block[f]], name_of_letter(letter)});
    }
  }
  for (std::size_t r = 0; r < kRelations; ++r)
    for (const auto& [from, to, name] : steps[r]) {
      result.steps[r].emplace_back(from, to);
      result.only[r].push_back(name);
    }
  result.accepting.assign(accepting.begin(), accepting.end());
  return result;
}

}  // namespace isolang::certify
