#include "dispatch/select.hpp"

#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "core/floating_point.hpp"
#include "kernels/halves.hpp"
#include "kernels/host/gemm.hpp"
#include "kernels/operand_form.hpp"
#include "kernels/packing_cost.hpp"
#include "pack/pack.hpp"
#include "tcgemm/error.hpp"
#include "tcgemm/plan.hpp"

namespace tcgemm {
namespace {

// The first GPU of each generation, by compute capability.
const char* first_gpu(int cc) {
    switch (cc) {
        case 70: return "a Volta GPU";
        case 75: return "a Turing GPU";
        case 80: return "an Ampere GPU";
        case 89: return "an Ada GPU";
        case 90: return "a Hopper GPU";
        default: return "a GPU";
    }
}

std::string dotted(int cc) { return std::to_string(cc / 10) + "." + std::to_string(cc % 10); }

std::string reason_against(const RegisteredFamily& entry, const KernelInfo& kernel,
                           const ValidProblem& problem, const DeviceProperties& device) {
    if (problem.empty()) return "has nothing to do: D has no elements";
    if (entry.family->on_cpu != device.device.is_cpu()) {
        return entry.family->on_cpu ? "takes host memory, the operands are on a GPU"
                                    : "takes GPU memory, the operands are on the CPU";
    }
    const int code = code_for(entry.architectures, device.cc());
    if (!entry.family->on_cpu && code == 0) {
        return "built for " + std::string(entry.architectures) + ", the device has sm_" +
               std::to_string(device.cc());
    }
    if (std::string reason = rejection(kernel, problem, device); !reason.empty()) return reason;
    if (code < kernel.least_cc) {
        return "needs code for sm_" + std::to_string(kernel.least_cc) +
               " or newer, and of what is " + "built (" + entry.architectures +
               ") the device runs that for sm_" + std::to_string(code) + "; build for sm_" +
               std::to_string(device.cc()) + " too";
    }
    if (!kernel.needs.any_dtype) {
        for (const DType from : {problem->a.dtype, problem->b.dtype}) {
            const DType to = operand_dtype(kernel.needs, problem, from);
            if (from != to && !pack::converts(from, to)) {
                return std::string("no conversion from ") + name(from) + " to " + name(to);
            }
        }
    }
    return {};
}

// Why kernels do not compute a product. Those of a family with one reason stand together.
class Reasons {
   public:
    void add(const RegisteredFamily& family, const KernelInfo& kernel, const std::string& reason) {
        for (Group& group : groups_) {
            if (group.family != &family || group.reason != reason) continue;
            ++group.count;
            return;
        }
        groups_.push_back({&family, kernel.name, reason, 1});
    }
    void add_note(const std::string& note) { note_ = "\n  " + note; }
    std::string text() const {
        std::string text;
        for (const Group& group : groups_) {
            text += "\n  ";
            if (group.count == 1) {
                text += group.first;
            } else if (group.count == group.family->family->kernel_count) {
                text += "all " + std::to_string(group.count) + " of " + group.family->name;
            } else {
                text +=
                    std::string(group.first) + " and " + std::to_string(group.count - 1) + " more";
            }
            text += ": " + group.reason;
        }
        return (text.empty() ? "\n  (no kernel is left to choose from)" : text) + note_;
    }

   private:
    struct Group {
        const RegisteredFamily* family;
        const char* first;  // kernel
        std::string reason;
        int count;
    };
    std::vector<Group> groups_;
    std::string note_;
};

bool is_any(const KernelInfo&) { return true; }
bool competes(const KernelInfo& kernel) { return kernel.competes; }

// Whether a kernel takes A and B as halves are made of them, also those that do not fit: where they
// lie, or converted to float32. Nothing else is packed for a fallback.
bool takes_float32(const KernelInfo& kernel, const ValidProblem& problem) {
    const OperandNeeds& needs = kernel.needs;
    const auto takes = [](const Operand& operand, bool packs, bool k_major) {
        return operand.dtype == DType::f32 ? !packs : !k_major;
    };
    return !needs.halves() && takes(problem->a, packs_a(problem, needs), needs.k_major_a) &&
           takes(problem->b, packs_b(problem, needs), needs.k_major_b);
}

// The row of least cost that accepts, of those that `is_meant`; kernel is null where none does.
// Adds the others' reasons.
template <class IsMeant>
Choice best_of(const RegisteredFamily& entry, const ValidProblem& problem,
               const DeviceProperties& device, const std::string& forced_kernel,
               const IsMeant& is_meant, Reasons& reasons) {
    Choice best{&entry, nullptr, {}, nullptr, {}, {}};
    for (int i = 0; i < entry.family->kernel_count; ++i) {
        const KernelInfo& kernel = entry.family->kernels[i];
        if (!forced_kernel.empty() && forced_kernel != kernel.name) continue;
        if (!is_meant(kernel)) continue;
        const std::string reason = reason_against(entry, kernel, problem, device);
        if (!reason.empty()) {
            reasons.add(entry, kernel, reason);
            continue;
        }
        const Schedule schedule = kernel.schedule(problem, device);
        if (!best.kernel || schedule.cost_us < best.schedule.cost_us) {
            best.kernel = &kernel;
            best.schedule = schedule;
        }
    }
    return best;
}

bool accepts(const RegisteredFamily& entry, const ValidProblem& problem,
             const DeviceProperties& device) {
    for (int i = 0; i < entry.family->kernel_count; ++i) {
        if (reason_against(entry, entry.family->kernels[i], problem, device).empty()) return true;
    }
    return false;
}

// What computes a product whose operands do not fit `choice`, of the families behind its own.
Choice fallback_of(const Choice& choice, const ValidProblem& problem,
                   const DeviceProperties& device) {
    const std::vector<RegisteredFamily>& families = registered_families();
    for (const RegisteredFamily* entry = choice.family + 1;
         entry != families.data() + families.size(); ++entry) {
        Reasons reasons;
        const auto takes = [&](const KernelInfo& kernel) { return takes_float32(kernel, problem); };
        const Choice found = best_of(*entry, problem, device, {}, takes, reasons);
        if (found.kernel) return found;
    }
    throw NoKernelError(std::string(choice.kernel->name) +
                        " takes only operands that fit halves, and this build has no kernel for "
                        "others; build the family simt too");
}

// The kernel of a later family that costs less, or what there is.
Choice after_competition(Choice best, const ValidProblem& problem, const DeviceProperties& device) {
    const std::vector<RegisteredFamily>& families = registered_families();
    for (const RegisteredFamily* entry = best.family + 1;
         entry != families.data() + families.size(); ++entry) {
        Reasons reasons;
        const Choice other = best_of(*entry, problem, device, {}, competes, reasons);
        if (other.kernel && other.schedule.cost_us < best.schedule.cost_us) best = other;
    }
    return best;
}

ValidProblem single_row(const ValidProblem& problem) {
    GemmProblem row = problem.as_given();
    row.m = 1;
    row.batch_rank = 0;
    return ValidProblem::check(row);
}

void check_names(const Forced& forced) {
    bool family_known = forced.family.empty(), kernel_known = forced.kernel.empty();
    std::string families;
    for (const RegisteredFamily& entry : registered_families()) {
        families += std::string(families.empty() ? "" : ", ") + entry.name;
        family_known = family_known || forced.family == entry.name;
        for (int i = 0; i < entry.family->kernel_count; ++i) {
            kernel_known = kernel_known || forced.kernel == entry.family->kernels[i].name;
        }
    }
    if (!family_known) {
        throw InvalidArgument("TCGEMM_FORCE_FAMILY is \"" + forced.family +
                              "\"; it must be one of this build's families, " + families +
                              ": unset it for the best one");
    }
    if (!kernel_known) {
        throw InvalidArgument(
            "TCGEMM_FORCE_KERNEL is \"" + forced.kernel +
            "\"; it must be one of this build's kernels, which tcgemm.kernels() and "
            "`python -m tcgemm info` list: unset it for the best one");
    }
}

std::optional<Choice> find(const ValidProblem& problem, const DeviceProperties& device,
                           const Forced& forced, Reasons& reasons) {
    const bool is_forced = !forced.family.empty() || !forced.kernel.empty();
    for (const RegisteredFamily& entry : registered_families()) {
        if (!forced.family.empty() && forced.family != entry.name) continue;
        Choice best = best_of(entry, problem, device, forced.kernel, is_any, reasons);
        if (best.kernel && best.kernel->needs.halves()) {
            const Choice other = fallback_of(best, problem, device);
            const bool never_fits = problem->k < halves::kMinNonzeros;
            // To a family further down, which may pack: a fallback does not.
            if (!is_forced && (never_fits || other.schedule.cost_us <= best.schedule.cost_us)) {
                continue;
            }
            best.fallback = other.kernel;
            best.fallback_schedule = other.schedule;
        }
        if (best.kernel) return is_forced ? best : after_competition(best, problem, device);
        // Families differ in their bits, so M and the batch must not choose among them.
        if (!is_forced && problem.batch_invariant() &&
            accepts(entry, single_row(problem), device)) {
            reasons.add_note("(a single row goes to " + std::string(entry.name) +
                             ", and other families would give it other bits: with determinism "
                             "run_to_run they may compute this product)");
            break;
        }
    }
    return std::nullopt;
}

[[noreturn]] void refuse(const DeviceProperties& device, const Forced& forced,
                         const Reasons& reasons) {
    std::string asked;
    if (!forced.family.empty()) asked += " TCGEMM_FORCE_FAMILY=" + forced.family;
    if (!forced.kernel.empty()) asked += " TCGEMM_FORCE_KERNEL=" + forced.kernel;
    throw NoKernelError("no kernel computes this product on " + device.name +
                        (asked.empty() ? "" : " under" + asked) +
                        (has_kernels(device)
                             ? ":" + reasons.text()
                             : ": this build has no code for compute capability " +
                                   dotted(device.cc()) + "; take another device, such as the CPU"));
}

}  // namespace

std::string rejection(const KernelInfo& kernel, const ValidProblem& problem,
                      const DeviceProperties& device) {
    if (device.cc() < kernel.least_cc) {
        return std::string("needs ") + first_gpu(kernel.least_cc) +
               " or a newer one (compute capability " + dotted(kernel.least_cc) +
               "), the device has " + dotted(device.cc());
    }
    return kernel.rejects(problem, device);
}

const Forced& forced_by_environment() {
    static const Forced& nothing = *new Forced;  // nothing here is destroyed: see plan_cache.cpp
    // Every call asks: one walk over the environment finds all.
    constexpr std::string_view kOurs = "TCGEMM_", kForce = "FORCE_";
    constexpr std::string_view kFamily = "FAMILY=", kKernel = "KERNEL=";
    constexpr std::string_view kThreads = "NUM_THREADS=", kIsa = "HOST_ISA=";
    std::string_view family, kernel, unknown;
    bool has_run_variable = false;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const char* const text = *variable;
        if (text[0] != kOurs[0] || std::strncmp(text, kOurs.data(), kOurs.size()) != 0) continue;
        std::string_view rest = text + kOurs.size();
        has_run_variable |=
            rest.substr(0, kThreads.size()) == kThreads || rest.substr(0, kIsa.size()) == kIsa;
        if (rest.substr(0, kForce.size()) != kForce) continue;
        rest.remove_prefix(kForce.size());
        if (rest.substr(0, kFamily.size()) == kFamily) {
            family = rest.substr(kFamily.size());
        } else if (rest.substr(0, kKernel.size()) == kKernel) {
            kernel = rest.substr(kKernel.size());
        } else if (rest.size() > rest.find('=') + 1) {  // an empty value counts as unset
            unknown = std::string_view(text, std::strcspn(text, "="));
        }
    }
    if (!unknown.empty()) {
        throw InvalidArgument(std::string(unknown) +
                              " is set, but there are only TCGEMM_FORCE_FAMILY and "
                              "TCGEMM_FORCE_KERNEL; unset it, or spell it as one of them");
    }
    if (has_run_variable) host::check_run_variables();
    if (family.empty() && kernel.empty()) return nothing;

    static std::mutex& mutex = *new std::mutex;
    static auto& known = *new std::map<std::pair<std::string, std::string>, Forced>;
    Forced forced{std::string(family), std::string(kernel)};
    const std::lock_guard<std::mutex> lock(mutex);
    const auto key = std::make_pair(forced.family, forced.kernel);
    if (const auto found = known.find(key); found != known.end()) return found->second;
    check_names(forced);
    forced.serial = static_cast<std::uint32_t>(known.size() + 1);
    return known.emplace(key, forced).first->second;
}

Choice select(const ValidProblem& problem, const DeviceProperties& device, const Forced& forced) {
    // Estimates err by as much: products that gathering would hardly help stay as they are.
    constexpr double kMostOfUngathered = 0.8;
    Reasons reasons, unused;
    const std::optional<Choice> as_it_is = find(problem, device, forced, reasons);
    const bool packs = !device.device.is_cpu();
    const std::optional<ValidProblem> gathered = packs ? problem.gathered() : std::nullopt;
    if (gathered) {
        std::optional<Choice> other = find(*gathered, device, forced, unused);
        const auto us = [&](const Choice& choice) {
            return choice.schedule.cost_us + gathering_us(*gathered, device, choice.kernel->needs);
        };
        if (other && (!as_it_is || us(*other) <= kMostOfUngathered * as_it_is->schedule.cost_us)) {
            other->gathered = gathered;
            return *other;
        }
    }
    if (as_it_is) return *as_it_is;
    refuse(device, forced, reasons);
}

std::vector<KernelVerdict> explain(const GemmProblem& problem, const DeviceProperties& device) {
    const DefaultFloatingPoint environment;  // as a plan has
    ValidProblem valid = ValidProblem::check(problem);
    const KernelInfo* chosen = nullptr;
    try {
        const Choice choice = select(valid, device, {});
        chosen = choice.kernel;
        if (choice.gathered) valid = *choice.gathered;
    } catch (const NoKernelError&) {
    }
    std::vector<KernelVerdict> verdicts;
    for (const RegisteredFamily& entry : registered_families()) {
        for (int i = 0; i < entry.family->kernel_count; ++i) {
            const KernelInfo& kernel = entry.family->kernels[i];
            verdicts.push_back({entry.name, kernel.name,
                                reason_against(entry, kernel, valid, device), &kernel == chosen});
        }
    }
    return verdicts;
}

}  // namespace tcgemm
