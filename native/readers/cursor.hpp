// A cursor over text for the readers of *regular* files: of the shape in which programs write a format.
//
// Formats that are read in Python, which accepts all that they allow and explains what is wrong, have such a reader
// besides, for speed. SOUND BECAUSE it takes or leaves a file as a whole: what is not exactly as expected, or not
// ASCII, is left to the one in Python (std::nullopt), and what both accept they read alike
// (tests/native/readers/test_regular.py).
#pragma once
#include <charconv>
#include <cstdint>
#include <string_view>

namespace isolang {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : p_(text.data()), end_(text.data() + text.size()) {}

  bool at_end() const { return p_ == end_; }
  char peek() const { return p_ < end_ ? *p_ : '\0'; }
  void next() { ++p_; }
  std::int64_t line() const { return line_; }

  bool take(char c) {
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }
  bool take(std::string_view word) {
    if (static_cast<std::size_t>(end_ - p_) < word.size() || std::string_view(p_, word.size()) != word) return false;
    p_ += word.size();
    return true;
  }
  bool newline() {
    if (!take('\n')) return false;
    ++line_;
    return true;
  }
  void blanks() {  // JSON's, without line ends
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r')) ++p_;
  }
  void blanks_and_lines() {
    for (blanks(); newline(); blanks()) {
    }
  }
  // A bracket, comma or colon of JSON between blanks.
  bool mark(char c) {
    blanks_and_lines();
    if (!take(c)) return false;
    blanks_and_lines();
    return true;
  }
  // The characters of a name: letters, digits, underscores; empty if there is none.
  std::string_view name() {
    const char* const start = p_;
    while (p_ < end_ && is_name(*p_)) ++p_;
    return {start, static_cast<std::size_t>(p_ - start)};
  }
  // JSON's integers of 64 bits, and nothing that is longer.
  bool natural(std::uint64_t& n) {
    const auto [stop, error] = std::from_chars(p_, end_, n);
    if (error != std::errc{} || (*p_ == '0' && stop - p_ > 1) || ends_badly(stop)) return false;
    p_ = stop;
    return true;
  }
  bool negative(std::int64_t& n) {
    if (peek() != '-' || end_ - p_ < 2 || p_[1] == '-' ||
        (p_[1] == '0' && end_ - p_ > 2 && p_[2] >= '0' && p_[2] <= '9'))
      return false;
    const auto [stop, error] = std::from_chars(p_, end_, n);
    if (error != std::errc{} || ends_badly(stop)) return false;
    p_ = stop;
    return true;
  }
  bool flag(bool& value) {
    value = peek() == 't';
    return take(value ? std::string_view("true") : std::string_view("false"));
  }
  // A value of JSON without escapes, fractions and depth.
  bool simple_value(int depth = 4);

 private:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  bool ends_badly(const char* stop) const {
    return stop < end_ && (is_name(*stop) || *stop == '.' || *stop == '+' || *stop == '-');
  }

  const char* p_;
  const char* end_;
  std::int64_t line_ = 1;
};

}  // namespace isolang
