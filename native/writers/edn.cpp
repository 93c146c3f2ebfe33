// Jepsen's EDN: one operation map per line, sessions as processes.
#include <algorithm>
#include <tuple>

#include "writers/out.hpp"

namespace isolang {
namespace {

std::size_t idx(auto i) { return static_cast<std::size_t>(i); }

class Lines {
 public:
  Lines(const History& h, const Sink& sink, Budget& budget)
      : h_(h), out_(sink), budget_(budget), sessions_(h), done_(idx(sessions_.count()), 0),
        running_(idx(sessions_.count()), 0) {}
  void completions_only();
  void in_real_time();

 private:
  Status status(std::int32_t t) const { return static_cast<Status>(h_.txn_status[idx(t)]); }
  void line(std::string_view type, std::int32_t t, bool timed = false, std::int64_t time = 0);
  void operation(std::int64_t op, bool asked);
  void make_room(std::int32_t session, std::int32_t upto);

  const History& h_;
  Out out_;
  Budget& budget_;
  Sessions sessions_;
  std::vector<std::int32_t> done_;  // transactions of each session that are completed
  std::vector<char> running_;       // whether its next one is invoked
  std::int64_t lines_ = 0;
};

void Lines::line(std::string_view type, std::int32_t t, bool timed, std::int64_t time) {
  budget_.poll();
  out_.text("{:index ");
  out_.number(++lines_);
  out_.text(", :type :");
  out_.text(type);
  out_.text(", :process ");
  out_.number(sessions_.place_of[idx(t)].first);
  if (timed) {
    out_.text(", :time ");
    out_.number(time);
  }
  out_.text(", :f :txn, :value [");
  for (std::int64_t op = h_.op_start[idx(t)]; op < h_.op_start[idx(t) + 1]; ++op) {
    if (op > h_.op_start[idx(t)]) out_.text(" ");
    operation(op, type == "invoke");
  }
  out_.text("]}\n");
}

void Lines::operation(std::int64_t op, bool asked) {
  const auto kind = static_cast<OpKind>(h_.op_kind[idx(op)]);
  const std::int32_t value = h_.op_value[idx(op)];
  const bool read = kind == OpKind::read || kind == OpKind::read_list;
  out_.text(kind == OpKind::write ? "[:w " : kind == OpKind::append ? "[:append " : "[:r ");
  out_.number(h_.key_atoms.number(h_.key_atom[idx(h_.op_key[idx(op)])]));
  out_.text(" ");
  if (read && (asked || value == kUnknownValue || (kind == OpKind::read && value == kNil))) {
    out_.text("nil");
  } else if (kind == OpKind::read_list) {
    out_.text("[");
    for (std::int64_t i = h_.list_start[idx(value)]; i < h_.list_start[idx(value) + 1]; ++i) {
      if (i > h_.list_start[idx(value)]) out_.text(" ");
      out_.number(h_.values.number(h_.list_values[idx(i)]));
    }
    out_.text("]");
  } else {
    out_.number(h_.values.number(value));
  }
  out_.text("]");
}

void Lines::completions_only() {
  for (std::int32_t t = 0; t < h_.transactions(); ++t)
    line(status(t) == Status::committed ? "ok" : status(t) == Status::aborted ? "fail" : "info", t);
  out_.flush();
}

// Aborted transactions have no real-time edges, and maybe ones no outgoing ones: their free ends go where their process
// needs them, before its next transaction.
void Lines::make_room(std::int32_t session, std::int32_t upto) {
  for (auto& done = done_[idx(session)]; done < upto; ++done) {
    const std::int32_t t = sessions_.txns[idx(sessions_.start[idx(session)] + done)];
    if (status(t) == Status::aborted) {
      line("invoke", t);
      line("fail", t);
    } else if (status(t) == Status::maybe && running_[idx(session)]) {
      line("info", t);
      running_[idx(session)] = 0;
    } else {
      return;
    }
  }
}

// Invocations and completions in their order; where times are equal, invocations first.
void Lines::in_real_time() {
  std::vector<std::tuple<std::int64_t, bool, std::int32_t>> events;
  events.reserve(2 * h_.txn_session.size());
  for (std::int32_t t = 0; t < h_.transactions(); ++t) {
    if (status(t) != Status::aborted) events.emplace_back(h_.txn_begin[idx(t)], false, t);
    if (status(t) == Status::committed) events.emplace_back(h_.txn_end[idx(t)], true, t);
  }
  std::ranges::sort(events);
  for (const auto& [time, completion, t] : events) {
    const auto [session, place] = sessions_.place_of[idx(t)];
    make_room(session, place);
    line(completion ? "ok" : "invoke", t, true, time);
    running_[idx(session)] = !completion;
    done_[idx(session)] += completion;
  }
  for (std::int32_t s = 0; s < sessions_.count(); ++s)
    make_room(s, sessions_.start[idx(s) + 1] - sessions_.start[idx(s)]);
  out_.flush();
}

}  // namespace

void write_edn(const History& h, bool real_time, const Sink& sink, Budget& budget) {
  Lines lines(h, sink, budget);
  real_time ? lines.in_real_time() : lines.completions_only();
}

}  // namespace isolang
