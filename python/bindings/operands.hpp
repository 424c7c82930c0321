// The arrays of one call: where they are, on which stream they are used, and their memory.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <optional>

#include "array_view.hpp"
#include "dlpack.hpp"
#include "frameworks.hpp"
#include "streams.hpp"

namespace tcgemm::python {

enum Slot { kA, kB, kC, kOut, kScaleA, kScaleB, kScaleD, kSlots };
inline constexpr const char* kSlotNames[kSlots] = {"a",       "b",       "c",      "out",
                                                   "scale_a", "scale_b", "scale_d"};
using Arrays = std::array<py::object, kSlots>;  // None where there is none

// What arrays were when they were imported before, or null: spares checks of what did not change.
using KnownViews = std::array<const ArrayView*, kSlots>;

// Of arrays whose own dtype is uint8: what their bytes are, always FP8.
using NamedDTypes = std::array<std::optional<DType>, kSlots>;

// While it lives, the current CUDA device is the one that computes.
class Operands {
   public:
    // Finds the device, chooses the stream and imports every array. Throws as import_array() does,
    // DeviceError where the arrays are on different devices, DTypeError for `out` out of JAX.
    // `stream` is Python's argument: None for the first operand's framework's current stream.
    // `planned`: where host arrays are computed; without one device_for_host_arrays().
    Operands(const Arrays& arrays, py::handle stream, const NamedDTypes& named,
             const KnownViews& known = {}, std::optional<Device> planned = std::nullopt);

    bool has(Slot slot) const { return !arrays_[slot].is_none(); }
    const ArrayView& view(Slot slot) const { return imported_[slot].view; }

    Device memory_device() const { return memory_; }
    Device compute_device() const { return compute_; }
    bool staged() const { return memory_.is_cpu() && !compute_.is_cpu(); }
    // Whether the call waits for its result: host arrays and JAX arrays.
    bool synchronous() const { return borrowed_.has_value(); }
    // Copies that producers made for us are freed with this, whatever still reads them.
    bool holds_copies() const;
    void check_copies_can_be_kept() const;  // a graph would read them when they are gone
    StreamView stream() const { return stream_; }

    // A new array of the first operand's framework, imported as `out`. On the CPU JAX gets memory
    // that becomes an array in finish(). Throws OutOfMemory.
    void allocate_out(DType dtype, int ndim, const Dims& shape);
    // The stream waits for the one that was given, and what the arrays' frameworks have in flight.
    void wait_for_frameworks();
    // After the launch: frameworks see the result in order, or keep memory until it is computed.
    void release_to_frameworks();
    // What the caller gets: `out` as given, or the new array.
    py::object finish();

   private:
    void make_out(DType dtype, int ndim, const Dims& shape);
    void import_rest();
    void check_out_is_writable() const;
    void choose_compute_device(std::optional<Device> planned);
    void choose_stream(py::handle stream);
    void let_go() const;  // of arrays that frameworks' adapters hold, where they are free
    bool any_jax_on_gpu() const;
    std::optional<StreamHandle> current_stream(Slot slot) const;
    // Whether we, not the producer, make our stream wait for what its framework has in flight.
    bool waits_for(Slot slot) const;

    Arrays arrays_;
    std::array<std::shared_ptr<TypeInfo>, kSlots> types_;
    std::array<ImportedArray, kSlots> imported_;
    Device memory_, compute_;
    std::optional<DeviceGuard> guard_;  // the current device is `compute_`
    StreamView stream_;
    std::array<std::optional<StreamHandle>, kSlots> current_;  // each framework's, on the GPU
    std::optional<StreamHandle> given_stream_;
    bool out_is_new_ = false;
    bool wrap_out_ = false;  // `out` is memory that the adapter makes an array of
    std::optional<BorrowedStream> borrowed_;
};

// The CPU, or the GPU that host arrays are staged through: TCGEMM_DEVICE, else the first one that
// this build has code for. Warns where CUDA is there and does not start. Throws InvalidArgument and
// DeviceError, which name the variable.
Device device_for_host_arrays();
Device device_for_host_arrays(const std::string& value);  // where the variable is `value`

}  // namespace tcgemm::python
