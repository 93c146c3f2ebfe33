// The Python functions of the native readers. A reader takes buffers (bytes, memoryview, mmap) and returns a history
// together with its remarks. While it reads the buffers without the GIL, they are held, but not copied.
#include "readers/readers.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "bindings/bindings.hpp"
#include "core/large_pages.hpp"
#include "readers/common.hpp"
#include "readers/jepsen.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {
namespace {

// An object with the buffer protocol (bytes, memoryview, mmap), held without a copy.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }
  std::string_view bytes() const {
    if (view_.len == 0) return {"", 0};  // an empty buffer may have no address
    return {static_cast<const char*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

nb::dict remarks_dict(const Remarks& remarks) {
  nb::dict out;
  for (const auto& [name, remark] : remarks) {
    const nb::object value = std::visit([](const auto& v) { return nb::cast(v); }, remark);
    out[nb::str(name.data(), name.size())] = value;
  }
  return out;
}

nb::tuple as_python(Reading&& reading) {
  nb::dict remarks = remarks_dict(reading.remarks);
  return nb::make_tuple(nb::cast(std::move(reading.history)), remarks);
}

template <typename Read>
nb::tuple without_gil(double seconds, Read&& read) {
  Budget budget = interruptible_budget(seconds);
  Reading reading;
  {
    nb::gil_scoped_release released;
    reading = read(budget);
  }
  return as_python(std::move(reading));
}

// Files whose buffers are held while they are read.
class Files {
 public:
  explicit Files(const std::vector<std::pair<std::string, nb::object>>& files) {
    for (const auto& [name, data] : files) {
      buffers_.push_back(std::make_unique<Buffer>(data));
      named_.push_back({name, buffers_.back()->bytes()});
    }
  }
  const std::vector<NamedBytes>& named() const { return named_; }

 private:
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<NamedBytes> named_;
};

nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>> as_array(std::vector<std::int64_t>&& numbers) {
  auto held = std::make_unique<std::vector<std::int64_t>>(std::move(numbers));
  const std::size_t size = held->size();
  std::int64_t* const data = held->data();
  const nb::capsule owner(held.release(), [](void* p) noexcept {
    delete static_cast<std::vector<std::int64_t>*>(p);
  });
  return {data, {size}, owner};
}

// Reads a block of a file of operation maps. `before` contains the fields of jepsen::Following, which describe
// everything before the block.
nb::tuple follow(nb::object data, const std::string& file_name, const nb::dict& before, double timeout) {
  const Buffer buffer(data);
  jepsen::Following following;
  const auto number = [&](const char* name) { return nb::cast<std::int64_t>(before[name]); };
  const auto numbers = [&](const char* name) { return nb::cast<std::vector<std::int64_t>>(before[name]); };
  following.file = static_cast<std::int32_t>(number("file"));
  following.carried_bytes = number("carried_bytes");
  following.carried_offset = numbers("carried_offset");
  following.carried_file = numbers("carried_file");
  following.carried_moment = numbers("carried_moment");
  following.carried_number = numbers("carried_number");
  const std::size_t carried = following.carried_offset.size();
  for (const auto* one : {&following.carried_file, &following.carried_moment, &following.carried_number})
    if (one->size() != carried) throw nb::value_error("one file, offset, moment and number for each carried map");
  following.lines = number("lines");
  following.bytes = number("bytes");
  following.moment = number("moment");
  following.begun = number("begun");
  following.front = number("front");
  following.by_time = nb::cast<bool>(before["by_time"]);
  following.json = nb::cast<bool>(before["json"]);
  following.by_index = nb::cast<bool>(before["by_index"]);
  following.index_is_time = nb::cast<bool>(before["index_is_time"]);
  following.has_process = static_cast<int>(number("has_process"));
  const nb::tuple read = without_gil(timeout, [&](Budget& budget) {
    return follow_edn(buffer.bytes(), file_name, following, budget);
  });
  return nb::make_tuple(read[0], read[1], as_array(std::move(following.invoked_at)),
                        as_array(std::move(following.completed_at)),
                        as_array(std::move(following.completed_when)));
}

// Returns the next `size` bytes of a file, or fewer where the file ends. Ctrl-C interrupts the reading between pieces.
nb::bytes read_in_large_pages(int file, std::size_t size) {
  constexpr std::size_t kPiece = std::size_t{1} << 26;
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (bytes == nullptr) throw nb::python_error();
  auto whole = nb::steal<nb::bytes>(bytes);
  char* const data = PyBytes_AsString(bytes);
  advise_large_pages(data, size);
  std::size_t done = 0;
  while (done < size) {
    ssize_t got = 0;
    int error = 0;  // the error of the call; taking the lock again may change errno
    {
      nb::gil_scoped_release released;
      got = ::read(file, data + done, std::min(kPiece, size - done));
      error = errno;
    }
    if (got < 0 && error != EINTR) {
      errno = error;
      PyErr_SetFromErrno(PyExc_OSError);
      throw nb::python_error();
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (got == 0) return nb::bytes(data, done);
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return whole;
}

// The lines of a file, piece by piece. It shows each piece to a function before it returns lines of it.
class FilePieces {
 public:
  FilePieces(int file, nb::handle take, bool may_be_recording)
      : file_(file), take_(take), may_be_recording_(may_be_recording), room_(kPieceBytes) {}

  // Throws NeedsWholeText if a line is longer than a piece, if the file cannot be read, or if it has a mark of an observed
  // recording, whose text other readers need.
  std::string_view next() {
    std::memmove(room_.data(), room_.data() + given_, have_ - given_);
    have_ -= given_;
    given_ = 0;
    std::size_t end = 0;
    while (!ended_ && end == 0) {
      if (have_ == room_.size()) throw NeedsWholeText("a long line");
      const std::size_t before = have_;
      read();
      const auto last = std::string_view(room_.data() + before, have_ - before).rfind('\n');
      if (last != std::string_view::npos) end = before + last + 1;
    }
    given_ = ended_ ? have_ : end;
    const std::string_view lines(room_.data(), given_);
    if (!may_be_recording_) return lines;
    if (contains(lines, ":perhaps", 'h') || contains(lines, ":observed true", 'b') || contains(lines, ";:unseen", ';'))
      throw NeedsWholeText("a recording");
    return lines;
  }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

  void read() {
    ssize_t got = 0;
    do got = ::read(file_, room_.data() + have_, room_.size() - have_);
    while (got < 0 && errno == EINTR);
    if (got < 0) throw NeedsWholeText("a file that cannot be read");
    ended_ = got == 0;
    if (ended_) return;
    {
      const nb::gil_scoped_acquire acquired;
      PyObject* const view = PyMemoryView_FromMemory(room_.data() + have_, got, PyBUF_READ);
      if (view == nullptr) throw nb::python_error();
      take_(nb::steal<nb::object>(view));
    }
    have_ += static_cast<std::size_t>(got);
    check_size("", bytes_ += static_cast<std::uint64_t>(got));
  }

  // Returns whether a word is in a text. It looks for the letter of the word that is the rarest in histories.
  static bool contains(std::string_view text, std::string_view word, char rarest) {
    const std::size_t in_word = word.find(rarest);
    for (std::size_t at = text.find(rarest); at != std::string_view::npos; at = text.find(rarest, at + 1))
      if (at >= in_word && text.substr(at - in_word, word.size()) == word) return true;
    return false;
  }

  int file_;
  nb::handle take_;
  bool may_be_recording_;
  std::vector<char> room_;
  std::size_t have_ = 0, given_ = 0;  // bytes read into the room, and those of them that `next` has returned
  std::uint64_t bytes_ = 0;
  bool ended_ = false;
};

// Reads a file without holding its text. Returns None if the text has to be read as a whole.
template <typename Read>
nb::object read_in_pieces(int file, std::size_t size, nb::handle take, double timeout, bool may_be_recording, Read&& read) {
  Budget budget = interruptible_budget(timeout);
  FilePieces pieces(file, take, may_be_recording);
  std::optional<Reading> reading;
  {
    const nb::gil_scoped_release released;
    reading = read(TextInPieces{[&] { return pieces.next(); }, size}, budget);
  }
  if (!reading) return nb::none();
  return as_python(std::move(*reading));
}

nb::object read_edn_in_pieces(int file, std::size_t size, const std::string& file_name, nb::object take, double timeout) {
  return read_in_pieces(file, size, take, timeout, true, [&](const TextInPieces& text, Budget& budget) {
    return read_edn(text, file_name, budget);
  });
}

nb::object read_plume_in_pieces(int file, std::size_t size, const std::string& file_name, nb::object take, double timeout) {
  return read_in_pieces(file, size, take, timeout, false,
                        [&](const TextInPieces& text, Budget& budget) -> std::optional<Reading> {
    try {
      return read_plume(text, file_name, budget);
    } catch (const NeedsWholeText&) {
      return std::nullopt;
    } catch (const ReadError&) {
      return std::nullopt;
    } catch (const UnsupportedInput&) {
      return std::nullopt;
    }
  });
}

}  // namespace

void register_readers(nb::module_& m) {
  nb::exception<ReadError>(m, "ReadError", PyExc_ValueError);
  nb::exception<UnsupportedInput>(m, "UnsupportedInput", PyExc_ValueError);

  m.def("read_in_large_pages", &read_in_large_pages, "file"_a, "size"_a,
        "The next `size` bytes of a file descriptor, fewer where it ends, in memory of large pages.");
  m.def(
      "read_cobra",
      [](const std::vector<std::pair<std::string, nb::object>>& files, bool timestamps, double timeout) {
        const Files held(files);
        return without_gil(timeout, [&](Budget& budget) { return read_cobra(held.named(), timestamps, budget); });
      },
      "files"_a, "timestamps"_a = false, "timeout"_a = 0.0);
  m.def("read_viper", [](const std::vector<std::pair<std::string, nb::object>>& files, double timeout) {
    const Files held(files);
    return without_gil(timeout, [&](Budget& budget) { return read_viper(held.named(), budget); });
  }, "files"_a, "timeout"_a = 0.0);
  const auto one_file = [&m](const char* name, Reading (*read)(std::string_view, const std::string&, Budget&)) {
    m.def(name, [read](nb::object data, const std::string& file_name, double timeout) {
      const Buffer buffer(data);
      return without_gil(timeout, [&](Budget& budget) { return read(buffer.bytes(), file_name, budget); });
    }, "data"_a, "file_name"_a = "", "timeout"_a = 0.0);
  };
  one_file("read_edn", static_cast<Reading (*)(std::string_view, const std::string&, Budget&)>(read_edn));
  m.def("read_edn_in_pieces", &read_edn_in_pieces, "file"_a, "size"_a, "file_name"_a, "take"_a, "timeout"_a = 0.0,
        "Reads a file of operation maps without holding its text; shows each piece of it to `take`. None if the text has "
        "to be read as a whole.");
  m.def("follow_edn", &follow, "data"_a, "file_name"_a, "before"_a, "timeout"_a = 0.0);
  m.def("read_registers", [](nb::object data, const std::string& file_name, const std::string& failed_cas, double timeout) {
    const FailedCas taken = failed_cas == "compared"  ? FailedCas::compared
                            : failed_cas == "nothing" ? FailedCas::nothing
                            : failed_cas == "auto"    ? FailedCas::by_format
                                                      : throw std::invalid_argument("no way to take a failed cas: " + failed_cas);
    const Buffer buffer(data);
    return without_gil(timeout, [&](Budget& budget) { return read_registers(buffer.bytes(), file_name, taken, budget); });
  }, "data"_a, "file_name"_a = "", "failed_cas"_a = "auto", "timeout"_a = 0.0);
  one_file("read_bincode", read_bincode);
  one_file("read_dbcop_json", read_dbcop_json);
  one_file("read_hist", read_hist);
  one_file("read_plume", static_cast<Reading (*)(std::string_view, const std::string&, Budget&)>(read_plume));
  m.def("read_plume_in_pieces", &read_plume_in_pieces, "file"_a, "size"_a, "file_name"_a, "take"_a, "timeout"_a = 0.0,
        "Reads a file of lines without holding its text; shows each piece of it to `take`. None if the text has to be read "
        "as a whole.");
  one_file("read_awdit", read_awdit);
}

}  // namespace isolang
