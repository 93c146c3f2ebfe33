// Gives arbitrary bytes to one native reader. It must return consistent columns, from which a problem can be built, or
// raise an error for the user. CMake defines kTarget, the reader's name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "readers/readers.hpp"

extern const std::string_view kTarget;

namespace {

using namespace isolang;

// Splits the bytes for formats with several files: the second file begins after the first NUL, NUL, NUL, newline.
std::vector<NamedBytes> files(std::string_view data) {
  constexpr std::string_view kBetween("\0\0\0\n", 4);
  const std::size_t cut = data.find(kBetween);
  if (cut == std::string_view::npos) return {{"first", data}};
  return {{"first", data.substr(0, cut)}, {"second", data.substr(cut + kBetween.size())}};
}

Reading read(std::string_view data, Budget& budget) {
  if (kTarget == "edn") return read_edn(data, "", budget);
  if (kTarget == "registers") return read_registers(data, "", FailedCas::by_format, budget);
  if (kTarget == "bincode") return read_bincode(data, "", budget);
  if (kTarget == "cobra") return read_cobra(files(data), false, budget);
  if (kTarget == "cobra_times") return read_cobra(files(data), true, budget);
  if (kTarget == "plume") return read_plume(data, "", budget);
  if (kTarget == "awdit") return read_awdit(data, "", budget);
  if (kTarget == "viper") return read_viper(files(data), budget);
  if (kTarget == "dbcop_json") return read_dbcop_json(data, "", budget);
  if (kTarget == "hist") return read_hist(data, "", budget);
  std::abort();  // no reader has this name
}

void use(const History& history) {
  history.validate();
  std::size_t characters = 0;
  for (const Atoms* atoms : {&history.key_atoms, &history.values})
    for (std::int32_t atom = 0; atom < atoms->size(); ++atom)
      if (atoms->kind(atom) >= AtomKind::string) characters += atoms->text(atom).size();
  volatile std::size_t read = characters;  // forces the compiler to keep the accesses to the text
  static_cast<void>(read);
  try {
    build_problem(history);
    build_problem(history, /*unread=*/false, /*each_read=*/true);
  } catch (const std::domain_error&) {  // a history that no problem can express; the error has a message for the user
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  isolang::Budget budget;
  try {
    use(read({reinterpret_cast<const char*>(data), size}, budget).history);
  } catch (const isolang::ReadError&) {
  } catch (const isolang::UnsupportedInput&) {
  }
  return 0;
}
