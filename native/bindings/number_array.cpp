#include "bindings/number_array.hpp"

#include <limits>
#include <string_view>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace isolang {

void NumberArray::set_strides() {
  strides_ = {dimensions_ == 1 ? item_size_ : shape_[1] * item_size_, item_size_};
}

std::int64_t NumberArray::at(Py_ssize_t i) const {
  switch (*format_) {
    case 'b':
      return static_cast<const std::int8_t*>(data_)[i];
    case 'B':
      return static_cast<const std::uint8_t*>(data_)[i];
    case 'i':
      return static_cast<const std::int32_t*>(data_)[i];
    case 'I':
      return static_cast<const std::uint32_t*>(data_)[i];
    default:
      return static_cast<const std::int64_t*>(data_)[i];
  }
}

NumberArray NumberArray::slice(Py_ssize_t start, Py_ssize_t size) const {
  NumberArray part = *this;
  if (start != 0) part.data_ = static_cast<char*>(data_) + start * strides_[0];
  part.shape_[0] = size;
  return part;
}

void NumberArray::fill(Py_buffer& buffer, int flags) {
  buffer.buf = data_;
  buffer.len = count() * item_size_;
  buffer.itemsize = item_size_;
  buffer.readonly = writable_ ? 0 : 1;
  buffer.ndim = dimensions_;
  buffer.format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_) : nullptr;
  buffer.shape = (flags & PyBUF_ND) != 0 ? shape_.data() : nullptr;
  buffer.suboffsets = nullptr;
  buffer.strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? strides_.data() : nullptr;
}

namespace {

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) noexcept {
  auto& numbers = *nb::inst_ptr<NumberArray>(self);
  numbers.fill(*buffer, flags);
  if ((flags & PyBUF_WRITABLE) != 0 && buffer->readonly != 0) {
    buffer->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "these numbers are read-only");
    return -1;
  }
  buffer->internal = nullptr;
  buffer->obj = self;
  Py_INCREF(self);
  return 0;
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};

nb::object as_numpy(nb::handle self) { return nb::module_::import_("numpy").attr("asarray")(self); }

nb::object memory_of(nb::handle self) { return nb::steal(PyMemoryView_FromObject(self.ptr())); }

nb::object element(nb::handle self, nb::handle key) {
  const auto& numbers = nb::cast<const NumberArray&>(self);
  if (PySlice_Check(key.ptr())) {
    const auto [start, stop, step, size] = nb::borrow<nb::slice>(key).compute(static_cast<std::size_t>(numbers.size()));
    if (step == 1) return nb::cast(numbers.slice(start, static_cast<Py_ssize_t>(size)));
  } else if (numbers.is_flat() && PyIndex_Check(key.ptr()) != 0) {
    Py_ssize_t i = PyNumber_AsSsize_t(key.ptr(), PyExc_IndexError);
    if (i == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();  // an array, whose class has indexes, too
      return as_numpy(self)[key];
    }
    if (i < 0) i += numbers.size();
    if (i < 0 || i >= numbers.size()) throw nb::index_error("no such number");
    return nb::int_(numbers.at(i));
  }
  return as_numpy(self)[key];
}

template <typename T>
NumberArray numbers_from(const nb::iterable& items) {
  std::vector<T> numbers;
  for (const nb::handle item : items) {
    const long long number = PyLong_AsLongLong(item.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      PyErr_SetString(PyExc_OverflowError, "a number is too large for its column");
      throw nb::python_error();
    }
    numbers.push_back(static_cast<T>(number));
  }
  return owned_numbers(std::move(numbers));
}

}  // namespace

void register_number_array(nb::module_& m) {
  auto c = nb::class_<NumberArray>(m, "NumberArray", nb::type_slots(kSlots),
                               "NumberArray of the core: a buffer, and a numpy array when used as one.");
  c.def("__len__", &NumberArray::size);
  c.def("__getitem__", &element);
  c.def("__iter__", [](nb::handle self) -> nb::object {
    if (!nb::cast<const NumberArray&>(self).is_flat()) return nb::iter(as_numpy(self));
    return nb::iter(memory_of(self));
  });
  c.def("tolist", [](nb::handle self) { return memory_of(self).attr("tolist")(); });
  c.def_prop_ro("size", &NumberArray::count);
  c.def_prop_ro("format", &NumberArray::format, "The type of the numbers, as in the module `struct`.");
  c.def("any", [](const NumberArray& numbers) {
    const NumberArray flat = numbers;
    for (Py_ssize_t i = 0; i < flat.count(); ++i)
      if (flat.at(i) != 0) return true;
    return false;
  });
  c.def("__array__", [](nb::handle self, nb::args given, nb::kwargs named) {
    return nb::module_::import_("numpy").attr("array")(memory_of(self), *given, **named);
  });
  c.def("__reduce__", [](nb::handle self) { return as_numpy(self).attr("__reduce__")(); });
  c.def("__repr__", [](nb::handle self) { return as_numpy(self).attr("__repr__")(); });
  c.def("__setitem__", [](nb::handle self, nb::handle key, nb::handle value) { as_numpy(self)[key] = value; });
  c.def("__getattr__", [](nb::handle self, const nb::str& name) -> nb::object {
    if (std::string_view(name.c_str()).starts_with("__")) throw nb::attribute_error(name.c_str());
    return as_numpy(self).attr(name);
  });
  // Python looks up operators in the class.
  for (const char* name :
       {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__add__", "__radd__", "__sub__", "__rsub__",
        "__mul__", "__rmul__", "__floordiv__", "__mod__", "__lshift__", "__rshift__", "__and__", "__rand__", "__or__",
        "__ror__", "__xor__", "__rxor__", "__neg__", "__invert__", "__bool__", "__contains__"})
    c.def(name, [name](nb::handle self, nb::args given) { return as_numpy(self).attr(name)(*given); });
  c.attr("__hash__") = nb::none();
  m.def("int32_array", &numbers_from<std::int32_t>, "numbers"_a);
  m.def("int64_array", &numbers_from<std::int64_t>, "numbers"_a);
}

}  // namespace isolang
