// Work during which other Python threads run.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace tcgemm::python {

// As pybind11's gil_scoped_release, but for a thread that is at work when the interpreter ends: up
// to 3.13 CPython calls pthread_exit() where such a thread asks for the GIL, which unwinds a stack
// on which destructors must not throw, and so aborts. It waits for the end of the process instead,
// as from 3.14 on.
class ReleasedGil {
   public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ~ReleasedGil() {
        try {
            PyEval_RestoreThread(state_);
        } catch (const abi::__forced_unwind&) {
            while (true) pause();
        }
    }
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;

   private:
    PyThreadState* state_;
};

}  // namespace tcgemm::python
