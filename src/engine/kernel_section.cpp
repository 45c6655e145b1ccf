// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_section.h"

#include "base/error.h"

#include <cstring>

namespace ingot {

static constexpr size_t kernel_key_bytes = 32;

void write_kernels(ContainerWriter& out, const KernelBinaries& kernels) {
    out.begin(SectionKind::Cubins, false);
    for (const auto& [key, binary] : kernels) {
        CHECK(key.size() == kernel_key_bytes, "a kernel's key has ", key.size(), " digits");
        uint64_t bytes = binary.size();
        out.write(std::as_bytes(std::span(key)));
        out.write(std::as_bytes(std::span(&bytes, 1)));
        out.write(std::as_bytes(std::span(binary)));
    }
    out.end();
}

std::shared_ptr<const KernelBinaries> read_kernels(const Container& c) {
    if (c.find(SectionKind::Cubins) == nullptr) {
        return nullptr;
    }
    std::span<const std::byte> rest = c.section(SectionKind::Cubins);
    auto kernels = std::make_shared<KernelBinaries>();
    while (!rest.empty()) {
        constexpr size_t head = kernel_key_bytes + sizeof(uint64_t);
        require(rest.size() >= head, ErrorCode::InvalidEngine, "section cubins: ", rest.size(),
                " bytes are left, a kernel begins with ", head);
        const char* text = reinterpret_cast<const char*>(rest.data());
        uint64_t bytes = 0;
        std::memcpy(&bytes, text + kernel_key_bytes, sizeof bytes);
        require(bytes <= rest.size() - head, ErrorCode::InvalidEngine,
                "section cubins: a kernel of ", bytes, " bytes, but ", rest.size() - head,
                " are left");
        kernels->emplace(std::string(text, kernel_key_bytes),
                         std::string(text + head, static_cast<size_t>(bytes)));
        rest = rest.subspan(head + static_cast<size_t>(bytes));
    }
    return kernels;
}

} // namespace ingot
