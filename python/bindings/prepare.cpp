// Calls in a loop find the plan of the call before them: all that it depends on is compared, and
// nothing is stated again.
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "product.hpp"

namespace tcgemm::python {
namespace {

// All that a statement and its plan depend on.
struct Facts {
    std::array<ArrayView, kSlots> views;  // of which the address counts by its alignment only
    std::array<bool, kSlots> given{};
    Modes modes;
    bool reads_c = false;
    Device device;
    std::uint64_t generation = 0;
};

struct Entry {
    Facts facts;
    std::shared_ptr<const Prepared> prepared;
};

bool same(const Modes& x, const Modes& y) {  // equal names of other objects are another entry
    return x.trans_a == y.trans_a && x.trans_b == y.trans_b && x.out_dtype.is(y.out_dtype) &&
           x.precision.is(y.precision) && x.accumulate.is(y.accumulate) &&
           x.determinism.is(y.determinism) && x.overflow.is(y.overflow) &&
           x.a_dtype.is(y.a_dtype) && x.b_dtype.is(y.b_dtype) && x.scales.any() == y.scales.any();
}

bool holds(const Facts& facts, const Operands& operands, const Modes& modes, bool reads_c,
           std::uint64_t generation) {
    if (facts.generation != generation || facts.reads_c != reads_c || !same(facts.modes, modes) ||
        !(facts.device == operands.compute_device())) {
        return false;
    }
    for (int i = 0; i < kSlots; ++i) {
        const auto slot = static_cast<Slot>(i);
        if (facts.given[slot] != operands.has(slot)) return false;
        if (!facts.given[slot]) continue;
        const ArrayView &before = facts.views[slot], &now = operands.view(slot);
        if (!same_layout(before, now) || before.alignment() != now.alignment()) return false;
    }
    return true;
}

// Where a product is kept: the one that was there gives way.
std::unique_ptr<Entry>& place_of(const Operands& operands) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;                 // 2^64 / golden ratio
    static auto& entries = *new std::array<std::unique_ptr<Entry>, 256>;  // holds Python objects
    std::uint64_t hash = 2u * static_cast<unsigned>(operands.compute_device().ordinal + 1) +
                         (operands.has(kOut) ? 1 : 0);
    for (const Slot slot : {kA, kB}) {
        const ArrayView& view = operands.view(slot);
        hash += static_cast<std::uint64_t>(view.dtype);
        for (int dim = 0; dim < view.ndim; ++dim) {
            hash = (hash ^ static_cast<std::uint64_t>(view.shape[dim])) * kGolden;
            hash += static_cast<std::uint64_t>(view.stride[dim]);
        }
    }
    hash *= kGolden;
    return entries[hash >> 56];  // the upper bits depend on all others
}

}  // namespace

std::shared_ptr<const Prepared> prepare(const Operands& operands, const Modes& modes,
                                        const GemmScalars& scalars) {
    const bool reads_c = scalars.beta != 0;
    const std::uint64_t generation = plan_cache_generation();
    std::unique_ptr<Entry>& entry = place_of(operands);
    if (entry != nullptr && holds(entry->facts, operands, modes, reads_c, generation)) {
        if (operands.has(kOut)) check_out_memory(operands, reads_c);
        return entry->prepared;
    }
    auto prepared = std::make_shared<Prepared>();
    prepared->statement = state(operands, modes, scalars);
    prepared->plan = cached_plan(prepared->statement.problem, operands.compute_device());
    auto made = std::make_unique<Entry>();
    for (int i = 0; i < kSlots; ++i) {
        made->facts.views[i] = operands.view(static_cast<Slot>(i));
        made->facts.given[i] = operands.has(static_cast<Slot>(i));
    }
    made->facts.modes = modes;
    made->facts.reads_c = reads_c;
    made->facts.device = operands.compute_device();
    made->facts.generation = generation;
    made->prepared = prepared;
    entry = std::move(made);
    return prepared;
}

}  // namespace tcgemm::python
