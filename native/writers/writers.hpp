// Fast writers of the plain case: numbers as keys and values, one initial state, sources by value.
//
// What is not plain is the Python writers' (isolang/history/writers/), which also say what cannot be expressed; on a
// plain history both give the same bytes.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "core/budget.hpp"
#include "core/history.hpp"

namespace isolang {

enum class WrittenFormat : std::uint8_t { bincode, plume, edn };

// Whether a history is plain: no declared initial transaction, initial values, explicit sources, or failed operations;
// keys and values whole numbers; nothing that the format lacks. `real_time`: EDN shall order its lines by it.
bool is_plain(const History& history, WrittenFormat format, bool real_time);

using Sink = std::function<void(std::string_view)>;

// Gives the text to `sink`, in pieces. The history must be plain.
void write_bincode(const History& history, const Sink& sink, Budget& budget);
void write_plume(const History& history, const Sink& sink, Budget& budget);
void write_edn(const History& history, bool real_time, const Sink& sink, Budget& budget);

}  // namespace isolang
