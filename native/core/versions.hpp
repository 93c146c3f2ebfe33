// Versions that a history states become the sources of its reads (docs/versions.md).
#pragma once
#include "core/history.hpp"

namespace isolang {

// Of each read that states a version, the write that states the same one. Call it once all operations
// are there, and again where others become initial.
void name_sources(History& history);

// Each read that states a version is identified by its value again.
void unname_sources(History& history);

// The history as if no operation had stated a version.
void forget_versions(History& history);

}  // namespace isolang
