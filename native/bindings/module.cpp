// The extension module `isolang._native`. Each of the other files in this folder registers the functions of one part of
// the core.
#include "bindings/bindings.hpp"

NB_MODULE(_native, m) {
  m.doc() =
      "The native core of isolang: history columns, readers, the neutral problem, the engine, the "
      "certificate checker.";
  // A history in a global variable lives until the interpreter ends. This should not be reported to users as a leak.
  nanobind::set_leak_warnings(false);
  isolang::register_number_array(m);
  isolang::register_history(m);
  isolang::register_plain(m);
  isolang::register_census(m);
  isolang::register_readers(m);
  isolang::register_writers(m);
  isolang::register_problem(m);
  isolang::register_engine(m);
  isolang::register_known(m);
  isolang::register_sat(m);
  isolang::certify::register_certify(m);
  isolang::register_simulator(m);
  isolang::register_recording(m);
  isolang::watch::register_watch(m);
}
