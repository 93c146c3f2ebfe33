// Writes Jepsen's operation maps, in EDN or JSON. Each line is one map, and each session is one process. With real
// time, `Schedule` first determines the order of invocations and completions.
#include <algorithm>
#include <tuple>

#include "writers/out.hpp"

namespace isolang {
namespace {

enum class Type : std::uint8_t { invoke, ok, fail, info };

struct Line {
  Type type;
  bool timed = false;
  std::int32_t txn;  // number of the transaction in the outline
  std::int64_t time = 0;
};

Status status(const Outline& part, std::int32_t t) {
  return static_cast<Status>(part.history.txn_status[idx(part.txns[idx(t)])]);
}

// The order in which the lines are written.
class Schedule {
 public:
  Schedule(const Outline& part, const Sessions& sessions)
      : part_(part), sessions_(sessions), done_(idx(sessions.count()), 0), running_(idx(sessions.count()), -1) {}

  void completions_only() {
    for (std::int32_t t = 0; idx(t) < part_.txns.size(); ++t) {
      const Status s = status(part_, t);
      lines.push_back({.type = s == Status::committed ? Type::ok : s == Status::aborted ? Type::fail : Type::info,
                       .txn = t});
    }
  }

  // Adds the invocations and completions in the order of their times; at equal times, invocations come first.
  //
  // SOUND BECAUSE t1 is before t2 in real time iff t1 ended strictly before t2 began. Aborted transactions have no
  // real-time edges, and indeterminate ones have no outgoing edges, so their ends are free, and are placed where their
  // process needs them. A transaction with an unknown begin has a completion without an invocation.
  std::optional<std::pair<std::int32_t, std::int32_t>> in_real_time(Budget& budget) {
    std::vector<std::tuple<std::int64_t, bool, std::int32_t>> events;
    events.reserve(2 * part_.txns.size());
    for (std::int32_t t = 0; idx(t) < part_.txns.size(); ++t) {
      const Status s = status(part_, t);
      if (s != Status::aborted && begin(t) != kTimeUnknownBegin) events.emplace_back(begin(t), false, t);
      if (s == Status::committed) events.emplace_back(part_.history.txn_end[idx(part_.txns[idx(t)])], true, t);
    }
    std::ranges::sort(events);
    for (const auto& [time, completion, t] : events) {
      budget.poll();
      const auto [session, place] = sessions_.place_of[idx(t)];
      make_room(session, place);
      std::int32_t& running = running_[idx(session)];
      std::int32_t& done = done_[idx(session)];
      if (done != place || (running >= 0 && running != t))
        return std::pair(part_.txns[idx(t)], part_.txns[idx(sessions_.txns[idx(sessions_.start[idx(session)] + done)])]);
      lines.push_back({.type = completion ? Type::ok : Type::invoke, .timed = true, .txn = t, .time = time});
      running = completion ? -1 : t;
      done += completion;
    }
    for (std::int32_t s = 0; s < sessions_.count(); ++s)
      make_room(s, sessions_.start[idx(s) + 1] - sessions_.start[idx(s)]);
    time_lines();
    return std::nullopt;
  }

  std::vector<Line> lines;

 private:
  std::int64_t begin(std::int32_t t) const { return part_.history.txn_begin[idx(part_.txns[idx(t)])]; }

  // If operations have times, lines have :time only if every line has one and transactions and operations use the same
  // clock. A line without a time gets that of the line before it.
  void time_lines() {
    if (!part_.history.has_operation_times()) return;
    std::int64_t time = kTimeUnknownBegin;
    for (const Line& line : lines)
      if (line.timed) {
        time = line.time;
        break;
      }
    for (Line& line : lines) {
      time = line.timed ? line.time : time;
      line.timed = !part_.history.two_clocks && time != kTimeUnknownBegin;
      line.time = time;
    }
  }

  void make_room(std::int32_t session, std::int32_t upto) {
    std::int32_t& running = running_[idx(session)];
    for (auto& done = done_[idx(session)]; done < upto; ++done) {
      const std::int32_t t = sessions_.txns[idx(sessions_.start[idx(session)] + done)];
      const Status s = status(part_, t);
      if (s == Status::aborted) {
        lines.push_back({.type = Type::invoke, .txn = t});
        lines.push_back({.type = Type::fail, .txn = t});
      } else if (s == Status::indeterminate && (running == t || begin(t) == kTimeUnknownBegin)) {
        lines.push_back({.type = Type::info, .txn = t});
        running = -1;
      } else {
        return;
      }
    }
  }

  const Outline& part_;
  const Sessions& sessions_;
  std::vector<std::int32_t> done_;     // number of completed transactions, per session
  std::vector<std::int32_t> running_;  // the transaction that is invoked in each session, or -1
};

class Speller {
 public:
  Speller(const Outline& part, const Sessions& sessions, std::span<const std::int64_t> names,
          const JepsenSpelling& spelling, const Sink& sink)
      : part_(part), h_(part.history), sessions_(sessions), names_(names), spelling_(spelling), out_(sink) {}

  void line(const Line& line) {
    constexpr std::string_view kTypes[] = {"invoke", "ok", "fail", "info"};
    const std::string_view type = kTypes[idx(line.type)];
    const std::int64_t process = spelling_.processes[idx(sessions_.place_of[idx(line.txn)].first)];
    const bool json = spelling_.json;
    out_.text(json ? "{\"index\":" : "{:index ");
    out_.number(++lines_);
    out_.text(json ? ",\"type\":\"" : ", :type :");
    out_.text(type);
    out_.text(json ? "\",\"process\":" : ", :process ");
    out_.number(process);
    if (h_.has_groups() && h_.txn_group[idx(part_.txns[idx(line.txn)])] != kNil) {
      out_.text(json ? ",\"group\":" : ", :group ");
      atom(h_.groups, h_.txn_group[idx(part_.txns[idx(line.txn)])], spelling_.groups);
    }
    names(line.txn, h_.labels, json ? ",\"label\":" : ", :label ", spelling_.labels);
    names(line.txn, h_.levels, json ? ",\"level\":" : ", :level ", spelling_.levels);
    if (line.timed) {
      out_.text(json ? ",\"time\":" : ", :time ");
      out_.number(line.time);
    }
    out_.text(json ? ",\"f\":\"txn\",\"value\":[" : ", :f :txn, :value [");
    bool first = true;
    const auto separate = [&] {
      if (!first) out_.text(between());
      first = false;
    };
    const bool asked = line.type == Type::invoke;
    each_operation(
        line.txn,
        [&](std::size_t s) {
          separate();
          scan(s, asked);
        },
        [&](std::int64_t i) {
          separate();
          operation(i, asked);
        });
    out_.text("]");
    if (!asked && h_.has_versions()) versions(line.txn);
    if (!asked && spelling_.times && h_.has_operation_times()) times(line.txn);
    if (!asked && !spelling_.statements.empty()) statements(line.txn);
    if (!spelling_.units.empty()) unit(line.txn);
    out_.text("}\n");
  }

  void header() {
    if (h_.versions_ordered)
      out_.text(spelling_.json ? "{\"versions\":\"ordered\"}\n" : "{:versions :ordered}\n");
  }

  void flush() { out_.flush(); }

  void versions(std::int32_t t) {
    std::vector<std::int32_t> found;
    each_operation(
        t, [&](std::size_t) { found.push_back(kNoVersion); },
        [&](std::int64_t i) { found.push_back(h_.version(part_.ops[idx(i)])); });
    if (std::ranges::all_of(found, [](std::int32_t v) { return v == kNoVersion; })) return;
    out_.text(spelling_.json ? ",\"versions\":[" : ", :versions [");
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i > 0) out_.text(between());
      found[i] == kNoVersion ? nil() : atom(h_.versions, found[i], spelling_.versions);
    }
    out_.text("]");
  }

  void unit(std::int32_t t) {
    const std::string& text = spelling_.units.at(idx(t));
    if (text.empty()) return;
    out_.text(spelling_.json ? ",\"unit\":" : ", :unit ");
    out_.text(text);
  }

  void statements(std::int32_t t) {
    const std::string& text = spelling_.statements.at(idx(t));
    if (text.empty()) return;
    out_.text(spelling_.json ? ",\"statements\":[" : ", :statements [");
    out_.text(text);
    out_.text("]");
  }

  // Writes the times of the operations, as far as they are known, and of COMMIT.
  void times(std::int32_t t) {
    const auto txn = idx(part_.txns[idx(t)]);
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    each_operation(
        t, [&](std::size_t s) { found.emplace_back(h_.statement_sent[s], h_.statement_answered[s]); },
        [&](std::int64_t i) {
          const auto op = idx(part_.ops[idx(i)]);
          found.emplace_back(h_.op_begin[op], h_.op_end[op]);
        });
    const bool json = spelling_.json;
    const auto known = [](const auto& time) {
      return time.first != kTimeUnknownBegin || time.second != kTimeUnknownEnd;
    };
    if (std::ranges::any_of(found, known)) {
      out_.text(json ? ",\"times\":[" : ", :times [");
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (i > 0) out_.text(between());
        interval(found[i].first, found[i].second);
      }
      out_.text("]");
    }
    if (h_.commit_begin[txn] == kTimeUnknownBegin && h_.commit_end[txn] == kTimeUnknownEnd) return;
    out_.text(json ? ",\"commit\":" : ", :commit ");
    interval(h_.commit_begin[txn], h_.commit_end[txn]);
  }

 private:
  void names(std::int32_t t, const Names& names, std::string_view field, const std::vector<std::string>& texts) {
    const auto txn = idx(part_.txns[idx(t)]);
    if (txn >= names.set_of.size() || names.set_of[txn] == 0) return;
    out_.text(field);
    out_.text(texts.at(idx(names.set_of[txn])));
  }

  // Calls scan(number of the predicate read) and operation(index in the outline) for each predicate read and each other
  // operation of the transaction, in program order.
  template <typename Scan, typename Operation>
  void each_operation(std::int32_t t, const Scan& scan, const Operation& operation) const {
    const std::int32_t txn = part_.txns[idx(t)];
    auto s = idx(std::ranges::lower_bound(h_.statement_txn, txn) - h_.statement_txn.begin());
    const auto scans_to = [&](std::int64_t op) {  // the predicate reads that begin at or before `op`
      for (; s < h_.statement_txn.size() && h_.statement_txn[s] == txn && h_.statement_start[s] <= op; ++s)
        scan(s);
    };
    for (std::int64_t i = part_.start[idx(t)]; i < part_.start[idx(t) + 1]; ++i) {
      scans_to(part_.ops[idx(i)]);
      if (!h_.in_statement(part_.ops[idx(i)])) operation(i);
    }
    scans_to(h_.operations());
  }

  void interval(std::int64_t begin, std::int64_t end) {
    if (begin == kTimeUnknownBegin && end == kTimeUnknownEnd) return nil();
    out_.text("[");
    begin == kTimeUnknownBegin ? nil() : out_.number(begin);
    out_.text(between());
    end == kTimeUnknownEnd ? nil() : out_.number(end);
    out_.text("]");
  }

  std::string_view between() const { return spelling_.json ? "," : " "; }

  // Writes a predicate read, which only EDN has.
  void scan(std::size_t s, bool asked) {
    out_.text("[:rp ");
    out_.text(h_.predicates[idx(h_.statement_predicate[s])]);
    out_.text(" ");
    if (asked || h_.statement_known[s] == 0) {
      nil();
    } else {
      out_.text("{");
      bool first = true;
      for (std::int64_t op = h_.statement_start[s]; op < h_.statement_end[s]; ++op) {
        if (h_.kind(op) == OpKind::read_none_of) continue;  // this set-read follows from the predicate and the rows
        if (!first) out_.text(" ");
        first = false;
        atom(h_.key_atoms, h_.key_atom[idx(h_.op_key[idx(op)])], spelling_.keys);
        out_.text(" ");
        const std::int32_t value = h_.op_value[idx(op)];
        atom(h_.values, h_.kind(op) == OpKind::read ? value : h_.list_values[idx(h_.list_start[idx(value)])],
             spelling_.values);
      }
      out_.text("}");
    }
    out_.text("]");
  }

  void operation(std::int64_t i, bool asked) {
    const std::int64_t op = part_.ops[idx(i)], name = names_[idx(i)];
    const auto kind = static_cast<OpKind>(h_.op_kind[idx(op)]);
    const bool read = !is_write(kind);
    if (kind == OpKind::write && h_.op_value[idx(op)] == h_.deleted) {
      out_.text("[:delete ");
      atom(h_.key_atoms, h_.key_atom[idx(h_.op_key[idx(op)])], spelling_.keys);
      return out_.text("]");
    }
    out_.text(spelling_.json ? "[\"" : "[:");
    out_.text(word_of(kind));
    out_.text(spelling_.json ? "\"," : " ");
    atom(h_.key_atoms, h_.key_atom[idx(h_.op_key[idx(op)])], spelling_.keys);
    out_.text(between());
    if ((read && asked) || name == kNameUnknown || name == kNameInitial) {
      nil();
    } else if (name <= kFirstNumber) {
      out_.number(kFirstNumber - name);
    } else if (holds_list(kind)) {
      out_.text("[");
      for (std::int64_t e = h_.list_start[idx(name)]; e < h_.list_start[idx(name) + 1]; ++e) {
        if (e > h_.list_start[idx(name)]) out_.text(between());
        atom(h_.values, h_.list_values[idx(e)], spelling_.values);
      }
      out_.text("]");
    } else {
      atom(h_.values, static_cast<std::int32_t>(name), spelling_.values);
    }
    out_.text("]");
  }

  static std::string_view word_of(OpKind kind) {
    switch (kind) {
      case OpKind::write: return "w";
      case OpKind::append: return "append";
      case OpKind::read_one_of: return "r-in";
      case OpKind::read_none_of: return "r-not-in";
      case OpKind::read:
      case OpKind::read_list: break;
    }
    return "r";
  }

  void nil() { out_.text(spelling_.json ? "null" : "nil"); }

  void atom(const Atoms& atoms, std::int32_t atom, const Texts& texts) {
    switch (atoms.kind(atom)) {
      case AtomKind::nil: return nil();
      case AtomKind::integer: return out_.number(atoms.number(atom));
      case AtomKind::natural: return out_.number(static_cast<std::uint64_t>(atoms.number(atom)));
      default: return out_.text(texts.at(atom));
    }
  }

  const Outline& part_;
  const History& h_;
  const Sessions& sessions_;
  std::span<const std::int64_t> names_;
  const JepsenSpelling& spelling_;
  Out out_;
  std::int64_t lines_ = 0;
};

}  // namespace

std::optional<std::pair<std::int32_t, std::int32_t>> write_jepsen(const Outline& part,
                                                                  std::span<const std::int64_t> names,
                                                                  const JepsenSpelling& spelling, const Sink& sink,
                                                                  Budget& budget) {
  const Sessions sessions(part);
  Schedule schedule(part, sessions);
  if (spelling.real_time) {
    if (const auto overlap = schedule.in_real_time(budget)) return overlap;
  } else {
    schedule.completions_only();
  }
  Speller speller(part, sessions, names, spelling, sink);
  speller.header();
  for (const Line& line : schedule.lines) {
    budget.poll();
    speller.line(line);
  }
  speller.flush();
  return std::nullopt;
}

}  // namespace isolang
