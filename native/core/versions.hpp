// Derives the sources of reads from the versions stated by a history (docs/versions.md): a read and a write that state
// the same version of a key belong together.
#pragma once
#include "core/history.hpp"

namespace isolang {

// Sets the source of each read that states a version to the write that states the same version.
// Call it once all operations are present, and again after other transactions have become initial.
void name_sources(History& history);

// Reverses name_sources: each read that states a version is identified by its value again.
void unname_sources(History& history);

// Removes all stated versions from the history.
void forget_versions(History& history);

}  // namespace isolang
