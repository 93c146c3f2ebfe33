// The native readers. They turn bytes in memory into columns, with remarks on how the bytes have been understood.
//
// A reader returns a History for which validate() passes, or throws ReadError / UnsupportedInput with a message for the
// user. It never allocates more than a small multiple of its input: before anything is sized by a count from a file,
// the count is compared with the number of remaining bytes.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang {

// Thrown if the input violates its format. `offset` is the line or the byte that the message names.
struct ReadError : std::runtime_error {
  ReadError(const std::string& message, std::int64_t at) : std::runtime_error(message), offset(at) {}
  std::int64_t offset;
};

// Thrown if the input is well-formed but contains something that this version cannot judge.
struct UnsupportedInput : std::runtime_error {
  UnsupportedInput(const std::string& message, std::int64_t at) : std::runtime_error(message), offset(at) {}
  std::int64_t offset;
};

// How the input has been understood, and which parts of it have no effect. Each name has a count, a flag, a text or a
// list.
using Remark = std::variant<std::int64_t, bool, std::string, std::vector<std::int64_t>, std::vector<std::string>>;
using Remarks = std::vector<std::pair<std::string, Remark>>;

struct Reading {
  History history;
  Remarks remarks;
};

struct NamedBytes {
  std::string name;
  std::string_view bytes;
};

// Reads Jepsen/Elle EDN, or the same operation maps in JSON. `name`, if given, begins the messages.
Reading read_edn(std::string_view data, const std::string& name, Budget& budget);
// Thrown if a text cannot be read piece by piece.
struct NeedsWholeText : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct TextInPieces {
  // Returns the next whole lines of the text, which stay valid until the next call; empty at the end.
  std::function<std::string_view()> next;
  std::size_t bytes;  // of the whole text, as expected
};
// Reads EDN that comes piece by piece, so that its text takes no memory. Returns nothing if the text has to be read as a
// whole: for an error, which may be about the end of a piece only, or if the text is JSON.
std::optional<Reading> read_edn(const TextInPieces& text, const std::string& name, Budget& budget);
namespace jepsen {
struct Following;
}
// Reads a block of such a file, preceded by the invocations that have not been completed yet.
Reading follow_edn(std::string_view data, const std::string& name, jepsen::Following& following, Budget& budget);
// How to read a comparison (a :cas, an :acquire, a :release) that failed without a reason. `compared` means that it ran
// and saw something else. `nothing` means that it did not happen, even if its error names the comparison. `by_format`,
// the default, means the first for the lines of a log, as in Porcupine, and the second for maps, as Jepsen defines
// :fail.
enum class FailedCas : std::uint8_t { by_format, compared, nothing };

// Reads logs of single operations on registers, locks and stores of texts: Jepsen's and Knossos's maps, the lines of
// Jepsen's log, and Porcupine's get, put and append.
Reading read_registers(std::string_view data, const std::string& name, FailedCas failed_cas, Budget& budget);
// Reads the old dbcop's bincode.
Reading read_bincode(std::string_view data, const std::string& name, Budget& budget);
// Reads Cobra's client logs: one file is one client and one session.
Reading read_cobra(const std::vector<NamedBytes>& files, bool timestamps, Budget& budget);
// Reads Plume/PolySI/IsoVista text: lines of `r(key,value,session,txn)`. The text may come piece by piece.
Reading read_plume(std::string_view data, const std::string& name, Budget& budget);
Reading read_plume(const TextInPieces& text, const std::string& name, Budget& budget);
// Reads AWDIT's `test` text.
Reading read_awdit(std::string_view data, const std::string& name, Budget& budget);

// Read dbcop's JSON and its .hist text.
Reading read_dbcop_json(std::string_view text, const std::string& name, Budget& budget);
Reading read_hist(std::string_view text, const std::string& name, Budget& budget);
// Reads Viper's JSON logs: one file is one session.
Reading read_viper(const std::vector<NamedBytes>& files, Budget& budget);

}  // namespace isolang
