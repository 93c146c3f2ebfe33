// dbcop's JSON: sessions of transactions, alone or as the "data" of an object with parameters.
//
// [[{"events": [{"Read": {"variable": 1, "version": 2}}, …], "committed": true}, …], …]; events also as ["r", 1, 2].
#include <algorithm>

#include "readers/forms.hpp"
#include "readers/versions.hpp"

namespace isolang {
namespace {

class DbcopJson {
 public:
  DbcopJson(std::string_view text, const std::string& name, History& history, Budget& budget)
      : json_(text, name), name_(name), h_(history), keys_(history.key_atoms), values_(history.values),
        budget_(budget) {
    json_.read_json(budget);
  }

  void read(Remarks& remarks) {
    json_.blank();
    if (json_.peek() == '{') {
      bool data = false;
      json_.object([&] {
        if (json_.name("data")) {
          if (data) json_.fail("the field \"data\" stands twice");
          data = true;
          return sessions();
        }
        const bool header =
            json_.name("params") || json_.name("info") || json_.name("start") || json_.name("end");
        header ? json_.skip() : unknown();
      });
      if (!data) json_.fail("no sessions (got no field \"data\", expected {\"data\": [[...], ...]})");
    } else {
      sessions();
    }
    json_.blank();
    if (!json_.at_end()) json_.expected("the end of the file");
    remarks.emplace_back("sessions", sessions_);
    remarks.emplace_back("empty_sessions", session_ - static_cast<std::int64_t>(sessions_.size()));
    std::ranges::sort(unknown_fields_);
    remarks.emplace_back("unknown_fields", unknown_fields_);
  }

 private:
  // Marks the value at this position. If the value turns out to be wrong, the message names the
  // position.
  Forms::Mark start() {
    json_.blank();
    return json_.mark();
  }

  [[noreturn]] void bad(Forms::Mark start, const std::string& what, const std::string& expected) {
    json_.back_to(start);
    const std::string got = json_.shown();
    std::string place;
    if (session_ > 0) place += ", session " + std::to_string(session_);
    if (transaction_ > 0) place += ", transaction " + std::to_string(transaction_);
    if (event_ > 0) place += ", event " + std::to_string(event_);
    fail_at(name_, "line " + std::to_string(json_.line()) + place, what + " (got " + got + ", expected " + expected + ")",
            json_.line());
  }

  void sessions() {
    const auto all = start();
    if (json_.peek() != '[') bad(all, "not a list of sessions", "[[...], ...]");
    json_.array([&] {
      ++session_;
      transaction_ = 0;
      const auto mark = start();
      if (json_.peek() != '[') bad(mark, "not a list of transactions", "[...]");
      json_.array([&] {
        ++transaction_;
        transaction();
      });
      if (transaction_ > 0) sessions_.push_back(session_);
    });
    transaction_ = 0;
  }

  void transaction() {
    budget_.poll();
    const auto mark = start();
    const char* const shape = "{\"events\": [...], \"committed\": true or false}";
    if (json_.peek() != '{') bad(mark, "not a transaction", shape);
    const std::int64_t ordinal = h_.transactions() + 1;
    const std::int32_t txn =
        h_.begin_transaction(static_cast<std::int32_t>(sessions_.size()), Status::committed, ordinal, ordinal);
    bool events = false, outcome = false;
    json_.object([&] {
      if (json_.name("events")) {
        const auto list = start();
        if (events || json_.peek() != '[') bad(events ? mark : list, "not a transaction", shape);
        events = true;
        json_.array([&] {
          ++event_;
          event();
        });
        event_ = 0;
      } else if (json_.name("committed")) {
        const auto value = start();
        bool committed = false;
        if (outcome || !json_.flag(committed)) bad(value, "no outcome", "\"committed\": true or false");
        outcome = true;
        if (!committed) h_.txn_status[static_cast<std::size_t>(txn)] = static_cast<std::uint8_t>(Status::aborted);
      } else {
        unknown();
      }
    });
    if (!events || !outcome) bad(mark, events ? "no outcome" : "not a transaction", shape);
  }

  void event() {
    const auto mark = start();
    bool read = false, nil = false, complete = false;
    std::uint64_t key = 0, value = 0;
    if (json_.peek() == '[') {
      int slot = 0;
      json_.array([&] {
        if (slot == 0) {
          json_.blank();
          read = json_.name("r");
          if (!read && !json_.name("w")) not_an_event(mark);
        } else if (slot == 1) {
          key = variable();
        } else if (slot == 2) {
          value = version(read, nil);
          complete = true;
        } else {
          not_an_event(mark);
        }
        ++slot;
      });
    } else if (json_.peek() == '{') {
      int kinds = 0;
      json_.object([&] {
        read = json_.name("Read");
        if (++kinds > 1 || (!read && !json_.name("Write"))) not_an_event(mark);
        json_.blank();
        if (json_.peek() != '{') not_an_event(mark);
        bool has_key = false, has_value = false;
        json_.object([&] {
          if (!has_key && json_.name("variable")) {
            has_key = true;
            key = variable();
          } else if (!has_value && json_.name("version")) {
            has_value = true;
            value = version(read, nil);
          } else {
            not_an_event(mark);
          }
        });
        nil = nil || (read && !has_value);
        complete = has_key && (has_value || read);
      });
    }
    if (!complete) not_an_event(mark);
    const std::int32_t number = h_.key_of(keys_.natural(key));
    h_.add_op(read ? OpKind::read : OpKind::write, number, nil ? kNil : values_.natural(value), event_);
  }

  [[noreturn]] void not_an_event(Forms::Mark mark) {
    bad(mark, "not an event",
        R"({"Read": {"variable": n, "version": n or null}}, {"Write": …}, ["r", n, n or null] or ["w", n, n])");
  }

  std::uint64_t variable() {
    const auto mark = start();
    std::uint64_t n = 0;
    if (!json_.natural(n)) bad(mark, "not a variable", "an unsigned 64-bit integer");
    return n;
  }

  std::uint64_t version(bool read, bool& nil) {
    const auto mark = start();
    std::uint64_t n = 0;
    nil = read && json_.null();
    if (!nil && !json_.natural(n))
      bad(mark, "not a version", read ? "an unsigned 64-bit integer or null" : "an unsigned 64-bit integer");
    return n;
  }

  void unknown() {  // call this at the name of a field
    std::string field(json_.word());
    if (std::ranges::find(unknown_fields_, field) == unknown_fields_.end()) unknown_fields_.push_back(std::move(field));
    json_.skip();
  }

  Forms json_;
  const std::string& name_;
  History& h_;
  Numbers keys_, values_;
  Budget& budget_;
  std::vector<std::int64_t> sessions_;  // for each session with transactions: its number in the file
  std::vector<std::string> unknown_fields_;
  std::int64_t session_ = 0, transaction_ = 0, event_ = 0;  // the current position, from 1
};

}  // namespace

Reading read_dbcop_json(std::string_view text, const std::string& name, Budget& budget) {
  check_size(name, text.size());
  Reading out;
  DbcopJson(without_byte_order_mark(text), name, out.history, budget).read(out.remarks);
  nil_for_unwritten_zeros(out);
  return out;
}

}  // namespace isolang
