// A hand-written reader of EDN forms over bytes in memory. It also reads JSON, as a dialect of EDN.
//
// JSON is read as EDN in which ':' is a blank and map keys are strings. So `{"type":"ok","value":[["w","x",1]]}` is the
// same sequence of forms as `{"type" "ok" "value" [["w" "x" 1]]}`, and only `null` needs special treatment. Whether the
// text is JSON, including its commas and colons, is checked beforehand (json_syntax.cpp).
#pragma once
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "readers/common.hpp"

namespace isolang {

class Forms {
 public:
  // `line` is the number of the first line, for messages.
  Forms(std::string_view data, const std::string& name, std::int64_t line = 1)
      : begin_(data.data()), p_(data.data()), end_(data.data() + data.size()), name_(name), line_(line) {}

  // Goes on with the text that follows the one read so far, whose end this is.
  void go_on(std::string_view text) {
    before_ += end_ - begin_;
    begin_ = p_ = text.data();
    end_ = text.data() + text.size();
  }

  // Reads JSON from here on. Checks the whole text first, and fails at the first position that is not JSON.
  void read_json(Budget& budget);
  bool json() const { return json_; }
  std::int64_t line() const { return line_; }
  std::int64_t offset() const { return before_ + (p_ - begin_); }  // bytes before this position

  // A position to which the reader can return.
  struct Mark {
    const char* p;
    std::int64_t line;
  };
  Mark mark() const { return {p_, line_}; }
  void back_to(Mark mark) {
    p_ = mark.p;
    line_ = mark.line;
  }
  std::int64_t column(Mark mark) const;  // column of the position, from 1, in bytes
  // Returns " at column N", with the line of the mark if that is not `line`.
  std::string at_column(Mark mark, std::int64_t line) const;
  // Returns the bytes from a mark to here.
  std::string_view since(Mark mark) const { return {mark.p, static_cast<std::size_t>(p_ - mark.p)}; }

  // Skips everything that separates forms: blanks, commas, `;` comments, and `#_` with the discarded form. Afterwards,
  // peek() returns the first character of a form, a closing bracket, or 0 at the end. To tell the end from a NUL byte,
  // which is not a form either, call at_end().
  void blank() {
    while (p_ < end_) {
      const Class c = class_of(*p_);
      if (c == Class::newline) {
        ++line_;
      } else if (c != Class::blank && !(c == Class::colon && json_)) {
        if (*p_ != ';' && *p_ != '#') return;
        if (!slow_blank()) return;
        continue;
      }
      ++p_;
    }
  }
  bool at_end() const { return p_ == end_; }
  char peek() const { return p_ < end_ ? *p_ : '\0'; }
  void next() { ++p_; }  // passes a bracket that peek() showed
  bool at_tag() const { return end_ - p_ >= 2 && p_[0] == '#' && is_letter(p_[1]); }

  // Reads the characters up to the next blank, bracket, quote or `;`. They are a keyword with its colon, a symbol, or a
  // number.
  std::string_view token() {
    const char* const start = p_;
    while (p_ < end_ && in_token(*p_)) ++p_;
    return {start, static_cast<std::size_t>(p_ - start)};
  }
  // Reads a keyword (without the colon), a symbol or a string that names something, and returns its text, or nothing if
  // the form is none of these.
  std::string_view word();

  // Interns the form here as one scalar. 1, "a", :k and nil are interned as such, and any other form (true, 1.5, [1 2],
  // #inst "…") by its canonical text.
  std::int32_t atom(Atoms& atoms, Numbers& numbers) {
    const char* q = p_;
    const bool negative = q < end_ && *q == '-';
    if (negative) ++q;
    const char* const digits = q;
    std::int64_t n = 0;
    while (q < end_ && q - digits < 18 && *q >= '0' && *q <= '9') n = 10 * n + (*q++ - '0');
    if (q > digits && (q == end_ || !in_token(*q)) && (*digits != '0' || q - digits == 1)) {
      p_ = q;
      return numbers.integer(negative ? -n : n);
    }
    return slow_atom(atoms, numbers);
  }
  // Appends the form here as canonical text: equal forms have equal texts.
  void text_of_form(std::string& out) { canonical(out, 0); }
  // Reads the integer here, if there is one that fits 64 bits. Returns whether it did.
  bool integer(std::int64_t& n);
  // natural(), flag() and null() do the same for unsigned numbers and for the JSON words true, false and null.
  bool natural(std::uint64_t& n) {
    const auto [stop, error] = std::from_chars(p_, end_, n);
    if (error != std::errc{} || (*p_ == '0' && stop - p_ > 1) || (stop < end_ && in_token(*stop))) return false;
    p_ = stop;
    return true;
  }
  bool flag(bool& value) {
    value = p_ < end_ && *p_ == 't';
    return take(value ? std::string_view("true") : std::string_view("false"));
  }
  bool null() { return take("null"); }
  // Reads the name of a field, or another word in quotes, if it is the given word. Returns whether it was.
  template <std::size_t size>
  bool name(const char (&word)[size]) {
    if (static_cast<std::size_t>(end_ - p_) <= size || *p_ != '"' || p_[size] != '"') return false;
    // The size is constant, so this becomes one or two comparisons.
    if (std::memcmp(p_ + 1, word, size - 1) != 0) return false;
    p_ += size + 1;
    return true;
  }
  // Read [ element, … ] and { "field": value, … } of JSON. The function reads one element, or one name and its value.
  template <typename Element>
  void array(Element&& element) {
    next();
    for (blank(); peek() != ']'; blank()) {
      if (at_end()) fail("the file ends inside a list (expected ']'); hint: truncated");
      element();
    }
    next();
  }
  template <typename Field>
  void object(Field&& field) {
    next();
    for (blank(); peek() != '}'; blank()) {
      if (at_end()) fail("the file ends inside an object (expected '}'); hint: truncated");
      if (peek() != '"') expected("a field name in quotes");
      field();
    }
    next();
  }
  // Skips the form here, however deeply it is nested.
  void skip();

  [[noreturn]] void fail(const std::string& what) const { fail_line(name_, line_, what); }
  // Fails with "expected X (got Y at column N)", where Y is the text at this place.
  [[noreturn]] void expected(const std::string& what, const std::string& hint = "") const;
  std::string shown();  // the form at this place, quoted and passed over, for a message
  std::string here() const;  // the token or bracket at this place, quoted, and its column, from 1, in bytes
  // Describes the lack of a field in the map at the mark: the end of a message, "(got X, expected E)". If the map lacks the
  // field but has a key that looks like a misspelling of it, X is this key with its column, and a hint follows. `known`
  // are the names that are fields themselves.
  std::string missing(Mark map, std::string_view field, std::span<const std::string_view> known, const std::string& got,
                      const std::string& otherwise);

 private:
  class JsonSyntax;
  enum class Class : std::uint8_t { token, blank, newline, colon, stop };
  static constexpr std::array<Class, 256> kClass = [] {
    std::array<Class, 256> table{};
    for (const char c : {' ', '\t', '\r', '\f', '\v', ','}) table[static_cast<unsigned char>(c)] = Class::blank;
    for (const char c : {'(', ')', '[', ']', '{', '}', '"', ';', '\0'})
      table[static_cast<unsigned char>(c)] = Class::stop;
    table[static_cast<unsigned char>('\n')] = Class::newline;
    table[static_cast<unsigned char>(':')] = Class::colon;
    return table;
  }();
  static Class class_of(char c) { return kClass[static_cast<unsigned char>(c)]; }
  bool in_token(char c) const {
    const Class k = class_of(c);
    return k == Class::token || (k == Class::colon && !json_);
  }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  bool take(std::string_view word) {
    if (!std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(word)) return false;
    if (p_ + word.size() < end_ && in_token(p_[word.size()])) return false;
    p_ += word.size();
    return true;
  }
  bool slow_blank();
  std::int32_t slow_atom(Atoms& atoms, Numbers& numbers);
  std::string_view string();      // begins after the opening quote; the result is valid until the next string
  void character();               // begins at the backslash
  std::string_view regex();       // begins at the quote of #"…", in which only the regex interprets a backslash
  void canonical(std::string& out, int depth);
  bool number(std::string_view token, std::string& text, std::uint64_t& natural, bool& negative) const;
  void valid_text(std::string_view text) const;

  const char* begin_;
  const char* p_;
  const char* end_;
  const std::string& name_;
  std::int64_t line_;
  std::int64_t before_ = 0;  // bytes before begin_
  bool json_ = false;
  std::string scratch_;  // the text of a string with escapes
  std::string open_;     // the closing brackets that skip() expects
};

}  // namespace isolang
