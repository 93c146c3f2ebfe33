// dbcop's bincode and Plume's text: sessions of transactions over numbers, 0 being the initial state.
#include "writers/out.hpp"

namespace isolang {
namespace {

std::size_t idx(auto i) { return static_cast<std::size_t>(i); }

bool is_write(const History& h, std::int64_t op) {
  return h.op_kind[idx(op)] == static_cast<std::uint8_t>(OpKind::write);
}

bool is_committed(const History& h, std::int32_t t) {
  return h.txn_status[idx(t)] == static_cast<std::uint8_t>(Status::committed);
}

std::uint64_t key(const History& h, std::int64_t op) {
  return static_cast<std::uint64_t>(h.key_atoms.number(h.key_atom[idx(h.op_key[idx(op)])]));
}

std::uint64_t value(const History& h, std::int64_t op) {  // nil has the number 0
  return static_cast<std::uint64_t>(h.values.number(h.op_value[idx(op)]));
}

}  // namespace

void write_bincode(const History& h, const Sink& sink, Budget& budget) {
  Out out(sink);
  const Sessions sessions(h);
  std::vector<char> used(idx(h.n_keys()), 0);
  std::uint64_t keys = 0;
  for (const std::int32_t k : h.op_key) {
    keys += used[idx(k)] == 0;
    used[idx(k)] = 1;
  }
  out.u64(0);
  out.u64(static_cast<std::uint64_t>(sessions.count()));
  out.u64(keys);
  out.u64(static_cast<std::uint64_t>(h.transactions()));
  out.u64(static_cast<std::uint64_t>(h.operations()));
  constexpr std::string_view date = "1970-01-01T00:00:00+00:00";  // of the run; the columns have none
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
      out.u64(static_cast<std::uint64_t>(h.op_start[idx(t) + 1] - h.op_start[idx(t)]));
      for (std::int64_t op = h.op_start[idx(t)]; op < h.op_start[idx(t) + 1]; ++op) {
        out.byte(is_write(h, op));
        out.u64(key(h, op));
        out.u64(value(h, op));
        out.byte(true);
      }
      out.byte(is_committed(h, t));
    }
  }
  out.flush();
}

void write_plume(const History& h, const Sink& sink, Budget& budget) {
  Out out(sink);
  const Sessions sessions(h);
  for (std::int32_t s = 0; s < sessions.count(); ++s)
    for (std::int32_t i = sessions.start[idx(s)]; i < sessions.start[idx(s) + 1]; ++i) {
      const std::int32_t t = sessions.txns[idx(i)];
      budget.poll();
      for (std::int64_t op = h.op_start[idx(t)]; op < h.op_start[idx(t) + 1]; ++op) {
        out.text(is_write(h, op) ? "w(" : "r(");
        out.number(key(h, op));
        out.text(",");
        out.number(value(h, op));
        out.text(",");
        out.number(s + 1);
        out.text(",");
        out.number(is_committed(h, t) ? t + 1 : -1);
        out.text(")\n");
      }
    }
  out.flush();
}

}  // namespace isolang
