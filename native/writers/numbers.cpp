// dbcop's bincode and Plume's text. Both consist of sessions of transactions whose keys and values are numbers; 0 is
// the initial state.
#include "writers/out.hpp"

namespace isolang {
namespace {

bool is_write(const Outline& part, std::int64_t i) {
  return part.history.op_kind[idx(part.ops[idx(i)])] == static_cast<std::uint8_t>(OpKind::write);
}

bool is_committed(const Outline& part, std::int32_t i) {
  return part.history.txn_status[idx(part.txns[idx(i)])] == static_cast<std::uint8_t>(Status::committed);
}

}  // namespace

void write_bincode(const Outline& part, std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                   const Sink& sink, Budget& budget) {
  Out out(sink);
  const Sessions sessions(part);
  std::vector<char> used(idx(part.history.n_keys()), 0);
  std::uint64_t n_keys = 0;
  for (const std::int64_t op : part.ops) {
    char& seen = used[idx(part.history.op_key[idx(op)])];
    n_keys += seen == 0;
    seen = 1;
  }
  out.u64(0);
  out.u64(static_cast<std::uint64_t>(sessions.count()));
  out.u64(n_keys);
  out.u64(part.txns.size());
  out.u64(part.ops.size());
  constexpr std::string_view date = "1970-01-01T00:00:00+00:00";  // the date of the run, which histories do not have
  for (const std::string_view text : {std::string_view("isolang"), date, date}) {
    out.u64(text.size());
    out.text(text);
  }
  out.u64(static_cast<std::uint64_t>(sessions.count()));
  for (std::int32_t s = 0; s < sessions.count(); ++s) {
    out.u64(static_cast<std::uint64_t>(sessions.start[idx(s) + 1] - sessions.start[idx(s)]));
    for (std::int32_t i = sessions.start[idx(s)]; i < sessions.start[idx(s) + 1]; ++i) {
      const std::int32_t t = sessions.txns[idx(i)];
      budget.poll();
      out.u64(static_cast<std::uint64_t>(part.start[idx(t) + 1] - part.start[idx(t)]));
      for (std::int64_t op = part.start[idx(t)]; op < part.start[idx(t) + 1]; ++op) {
        out.byte(is_write(part, op));
        out.u64(keys[idx(op)]);
        out.u64(values[idx(op)]);
        out.byte(part.history.op_ok[idx(part.ops[idx(op)])] != 0);
      }
      out.byte(is_committed(part, t));
    }
  }
  out.flush();
}

void write_plume(const Outline& part, std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                 const Sink& sink, Budget& budget) {
  Out out(sink);
  const Sessions sessions(part);
  for (std::int32_t s = 0; s < sessions.count(); ++s)
    for (std::int32_t i = sessions.start[idx(s)]; i < sessions.start[idx(s) + 1]; ++i) {
      const std::int32_t t = sessions.txns[idx(i)];
      budget.poll();
      for (std::int64_t op = part.start[idx(t)]; op < part.start[idx(t) + 1]; ++op) {
        out.text(is_write(part, op) ? "w(" : "r(");
        out.number(keys[idx(op)]);
        out.text(",");
        out.number(values[idx(op)]);
        out.text(",");
        out.number(s + 1);
        out.text(",");
        out.number(is_committed(part, t) ? t + 1 : -1);
        out.text(")\n");
      }
    }
  out.flush();
}

}  // namespace isolang
