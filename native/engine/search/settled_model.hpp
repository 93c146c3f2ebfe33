// The model of a history that pruning decides completely, as at RC and RA if each read has one source.
#pragma once
#include <optional>

#include "engine/search/search.hpp"

namespace isolang {

// Returns the model in which the writers of each key follow the pruner's order, or nothing if that
// order does not decide everything. Call it when the pruner is done.
std::optional<Model> settled_model(const Pruner& pruner);

}  // namespace isolang
