// tcgemm: tensor-core matrix products. This header brings all of the C++ interface.
#pragma once

#include "tcgemm/buffer.hpp"
#include "tcgemm/device.hpp"
#include "tcgemm/dtype.hpp"
#include "tcgemm/environment.hpp"
#include "tcgemm/epilogue.hpp"
#include "tcgemm/error.hpp"
#include "tcgemm/plan.hpp"
#include "tcgemm/probe.hpp"
#include "tcgemm/problem.hpp"
#include "tcgemm/stream.hpp"
#include "tcgemm/version.h"
