#include "probe.hpp"

#include <pybind11/numpy.h>

#include <string>

#include "streams.hpp"
#include "tcgemm/error.hpp"
#include "tcgemm/probe.hpp"

namespace tcgemm::python {
namespace {

namespace py = pybind11;
using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

Device device_of(int ordinal) {
    about_to_use_cuda();
    return Device::cuda(ordinal);
}

py::list instructions(int ordinal) {
    py::list rows;
    for (const MmaInstruction& instruction : mma_instructions(device_of(ordinal))) {
        rows.append(py::make_tuple(instruction.name, name(instruction.precision), instruction.k));
    }
    return rows;
}

// a, b: (cases, k); c: (cases,).
Floats run(const std::string& wanted, int ordinal, const Floats& a, const Floats& b,
           const Floats& c) {
    const Device device = device_of(ordinal);
    for (const MmaInstruction& instruction : mma_instructions(device)) {
        if (wanted != instruction.name) continue;
        const py::ssize_t count = c.size();
        if (a.size() != count * instruction.k || b.size() != a.size()) {
            throw ShapeError("a and b must have the shape (cases, " +
                             std::to_string(instruction.k) + "), and c (cases,)");
        }
        Floats d(count);
        run_mma(instruction, device, static_cast<int>(count), a.data(), b.data(), c.data(),
                d.mutable_data());
        return d;
    }
    throw UnsupportedError("instruction " + wanted +
                           " does not exist on this GPU; mma_instructions() lists those that do");
}

}  // namespace

void bind_probe(py::module_& module) {
    module.def("mma_instructions", &instructions);
    module.def("run_mma", &run);
}

}  // namespace tcgemm::python
