// The thin layer between the native core and Python. Each file in this folder has one register function, which adds one
// part of the core, with its functions and classes, to the module.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "bindings/number_array.hpp"
#include "core/budget.hpp"

namespace isolang {

void register_history(nanobind::module_& m);
void register_plain(nanobind::module_& m);
void register_census(nanobind::module_& m);
void register_readers(nanobind::module_& m);
void register_writers(nanobind::module_& m);
void register_problem(nanobind::module_& m);
void register_engine(nanobind::module_& m);
void register_known(nanobind::module_& m);
void register_sat(nanobind::module_& m);
void register_simulator(nanobind::module_& m);
void register_recording(nanobind::module_& m);
namespace certify {
void register_certify(nanobind::module_& m);
}
namespace watch {
void register_watch(nanobind::module_& m);
}

// A column of numbers that Python hands over.
template <typename T>
using Array = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// Rows of predicate reads, each as the number of a predicate read and a key.
using PredicateRows = nanobind::ndarray<const std::int32_t, nanobind::shape<-1, 2>, nanobind::c_contig,
                                     nanobind::device::cpu>;

// The elements of a tuple or of a list, as borrowed references. The class calls functions, because the macros for
// direct access are not part of the limited API, for which the wheel for Python 3.12 and later is compiled.
class Items {
 public:
  explicit Items(nanobind::handle sequence)
      : object_(sequence.ptr()),
        is_tuple_(PyTuple_Check(object_)),
        size_(is_tuple_ ? PyTuple_Size(object_) : PyList_Size(object_)) {
    if (size_ < 0) throw nanobind::python_error();  // the object is neither a tuple nor a list
  }
  Py_ssize_t size() const { return size_; }
  PyObject* operator[](Py_ssize_t at) const {
    return is_tuple_ ? PyTuple_GetItem(object_, at) : PyList_GetItem(object_, at);
  }

 private:
  PyObject* object_;
  bool is_tuple_;
  Py_ssize_t size_;
};

// Returns the numbers in a column, one for each entry.
template <typename T>
const std::vector<T>& numbers_in(const std::vector<T>& column) {
  return column;
}
const auto& numbers_in(const auto& compact) { return compact.expanded(); }

// Adds a property that views a column. All columns of a type share a function, as nanobind makes much code of each.
template <typename Owner, typename Column>
void def_column(nanobind::class_<Owner>& c, const char* name, Column Owner::* column) {
  c.def_prop_ro(name, [column](nanobind::handle self) {
    return view(numbers_in(nanobind::cast<const Owner&>(self).*column), self);
  });
}

// Returns a budget that also notices Ctrl-C and reports the current phase to `progress`, unless that is None. Create it
// while holding the GIL, and poll it without the GIL.
inline Budget interruptible_budget(double seconds, nanobind::handle progress = nanobind::none()) {
  return Budget(seconds, [progress](const Budget& budget) {
    nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    if (!progress.is_none()) progress(budget.phase);
  });
}

}  // namespace isolang
