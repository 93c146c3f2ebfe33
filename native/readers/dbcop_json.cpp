// Regular dbcop JSON: [[{"events": [{"Read": {"variable": 1, "version": 2}}, …], "committed": true}, …], …], bare or as
// "data" of an object that has parameters; events also as ["r", 1, 2].
#include "readers/common.hpp"
#include "readers/cursor.hpp"

namespace isolang {
namespace {

class DbcopJson {
 public:
  DbcopJson(std::string_view text, History& history, Budget& budget)
      : in_(text), h_(history), keys_(history.key_atoms), values_(history.values), budget_(budget) {}

  bool read() {
    in_.blanks_and_lines();
    if (in_.peek() == '[') {
      if (!sessions()) return false;
    } else {
      bool data = false;
      const auto field = [&] {
        if (in_.take("\"data\"")) {
          if (data || !in_.mark(':')) return false;
          data = true;
          return sessions();
        }
        return (in_.take("\"params\"") || in_.take("\"info\"") || in_.take("\"start\"") || in_.take("\"end\"")) &&
               in_.mark(':') && in_.simple_value();
      };
      if (!list('{', '}', field) || !data) return false;
    }
    in_.blanks_and_lines();
    return in_.at_end();
  }

  const std::vector<std::int64_t>& labels() const { return labels_; }
  std::int64_t seen() const { return seen_; }

 private:
  // `open` element, element … `close`
  template <typename Element>
  bool list(char open, char close, Element&& element) {
    if (!in_.mark(open)) return false;
    for (bool first = true; !in_.take(close); first = false) {
      if ((!first && !in_.mark(',')) || !element()) return false;
      in_.blanks_and_lines();
    }
    return true;
  }

  bool sessions() {
    return list('[', ']', [&] {
      const auto before = h_.transactions();
      const auto session = static_cast<std::int32_t>(labels_.size());
      ++seen_;
      if (!list('[', ']', [&] { return transaction(session); })) return false;
      if (h_.transactions() > before) labels_.push_back(seen_);
      return true;
    });
  }

  bool transaction(std::int32_t session) {
    budget_.poll();
    const std::int64_t ordinal = h_.transactions() + 1;
    const std::int32_t txn = h_.begin_transaction(session, Status::committed, ordinal, ordinal);
    bool events = false, outcome = false;
    const auto field = [&] {
      if (!events && in_.take("\"events\"")) {
        events = true;
        std::int64_t position = 0;
        return in_.mark(':') && list('[', ']', [&] { return event(++position); });
      }
      bool committed = false;
      if (outcome || !in_.take("\"committed\"") || !in_.mark(':') || !in_.flag(committed)) return false;
      outcome = true;
      if (!committed) h_.txn_status[static_cast<std::size_t>(txn)] = static_cast<std::uint8_t>(Status::aborted);
      return true;
    };
    return list('{', '}', field) && events && outcome;
  }

  bool event(std::int64_t position) {
    if (in_.peek() == '[') return brief_event(position);
    if (!in_.mark('{')) return false;
    const bool read = in_.take("\"Read\"");
    if ((!read && !in_.take("\"Write\"")) || !in_.mark(':')) return false;
    bool variable = false, version = false;
    std::uint64_t key = 0, value = 0;
    bool nil = false;
    const auto field = [&] {
      if (!variable && in_.take("\"variable\"")) {
        variable = true;
        return in_.mark(':') && in_.natural(key);
      }
      if (version || !in_.take("\"version\"") || !in_.mark(':')) return false;
      version = true;
      nil = read && in_.take("null");
      return nil || in_.natural(value);
    };
    if (!list('{', '}', field) || !variable || !version) return false;
    add(read, key, nil, value, position);
    in_.blanks_and_lines();
    return in_.take('}');
  }

  bool brief_event(std::int64_t position) {
    if (!in_.mark('[') || !in_.take('"')) return false;
    const bool read = in_.take('r');
    std::uint64_t key = 0, value = 0;
    if ((!read && !in_.take('w')) || !in_.take('"') || !in_.mark(',') || !in_.natural(key) || !in_.mark(','))
      return false;
    const bool nil = read && in_.take("null");
    if (!nil && !in_.natural(value)) return false;
    add(read, key, nil, value, position);
    in_.blanks_and_lines();
    return in_.take(']');
  }

  void add(bool read, std::uint64_t key, bool nil, std::uint64_t value, std::int64_t position) {
    const std::int32_t number = h_.key_of(keys_.natural(key));
    h_.add_op(read ? OpKind::read : OpKind::write, number, nil ? kNil : values_.natural(value), position);
  }

  Cursor in_;
  History& h_;
  Numbers keys_, values_;
  Budget& budget_;
  std::vector<std::int64_t> labels_;  // of the sessions with transactions: which one of the file's it is
  std::int64_t seen_ = 0;             // sessions
};

}  // namespace

std::optional<Reading> read_regular_dbcop_json(std::string_view text, const std::string& name, Budget& budget) {
  check_size(name, text.size());
  Reading out;
  DbcopJson json(text, out.history, budget);
  if (!json.read()) return std::nullopt;
  out.remarks.emplace_back("sessions", json.labels());
  out.remarks.emplace_back("empty", json.seen() - static_cast<std::int64_t>(json.labels().size()));
  return out;
}

}  // namespace isolang
