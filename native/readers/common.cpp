// Forms error messages, with the name of the file and the position in it, and checks sizes and UTF-8.
#include "readers/common.hpp"

#include <algorithm>
#include <array>

namespace isolang {
namespace {

std::string where(const std::string& name, const char* unit, std::int64_t at, const std::string& what) {
  std::string message = name.empty() ? "" : name + ": ";
  message += unit;
  message += ' ';
  message += std::to_string(at);
  message += ": ";
  return message + what;
}

constexpr std::string_view kHex = "0123456789abcdef";

}  // namespace

void fail_line(const std::string& name, std::int64_t line, const std::string& what) {
  throw ReadError(where(name, "line", line, what), line);
}

void fail_byte(const std::string& name, std::int64_t byte, const std::string& what) {
  throw ReadError(where(name, "byte", byte, what), byte);
}

void fail_at(const std::string& name, const std::string& where, const std::string& what, std::int64_t line) {
  throw ReadError((name.empty() ? "" : name + ": ") + where + ": " + what, line);
}

void unsupported_line(const std::string& name, std::int64_t line, const std::string& what) {
  throw UnsupportedInput(where(name, "line", line, what), line);
}

void unsupported_byte(const std::string& name, std::int64_t byte, const std::string& what) {
  throw UnsupportedInput(where(name, "byte", byte, what), byte);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kMaxQuoted = 40;
  std::string out = "'";
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {  // also bytes that are not ASCII, because a cut inside a character must not reach Python as text
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out + (text.size() > kMaxQuoted ? "…'" : "'");
}

std::string quoted_byte(unsigned char byte) {
  std::string out;
  if (byte >= 0x20 && byte < 0x7f) out = {'\'', static_cast<char>(byte), '\'', ' ', '('};
  out += "0x";
  out += kHex[byte >> 4U];
  out += kHex[byte & 15U];
  return out.size() > 4 ? out + ")" : out;
}

void check_size(const std::string& name, std::uint64_t bytes) {
  if (bytes > kMaxInput)
    unsupported_byte(name, 0, "the input is larger than 16 GiB (got " + std::to_string(bytes) +
                                  " bytes); hint: split it, or check a part of it");
}

void expect_lines(History& history, std::string_view start, std::size_t bytes) {
  constexpr std::size_t kSample = 1 << 16;
  if (start.size() < kSample) return;
  const auto sample = start.substr(0, kSample);
  if (const auto lines = static_cast<std::size_t>(std::ranges::count(sample, '\n')); lines > 0)
    history.reserve_operations(bytes / (kSample / lines) * 9 / 8);
}

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = p + text.size();
  const auto continues = [&](std::ptrdiff_t i) { return (p[i] & 0xc0U) == 0x80; };
  while (p < end) {
    const unsigned char lead = *p;
    if (lead < 0x80) {
      ++p;
    } else if (lead >= 0xc2 && lead < 0xe0) {
      if (end - p < 2 || !continues(1)) return false;
      p += 2;
    } else if (lead >= 0xe0 && lead < 0xf0) {
      if (end - p < 3 || !continues(1) || !continues(2)) return false;
      if ((lead == 0xe0 && p[1] < 0xa0) || (lead == 0xed && p[1] >= 0xa0)) return false;
      p += 3;
    } else if (lead >= 0xf0 && lead < 0xf5) {
      if (end - p < 4 || !continues(1) || !continues(2) || !continues(3)) return false;
      if ((lead == 0xf0 && p[1] < 0x90) || (lead == 0xf4 && p[1] >= 0x90)) return false;
      p += 4;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace isolang
