// SPDX-License-Identifier: Apache-2.0
// Interfaces that applications implement for memory and bytes: allocators, stream readers, writer.
#include "callbacks.h"

#include <cstring>

namespace ingot::python {

namespace {

/// The methods of both allocators: those that the Python class defines are called, the others fall
/// back as in C++.
template <class Base>
class PyAllocator : public Base {
public:
    NB_TRAMPOLINE(Base);

    void* allocate(uint64_t size, uint64_t alignment, uint32_t flags) noexcept override {
        return address(
            "allocate", [&] { return Base::allocate(size, alignment, flags); }, size, alignment,
            flags);
    }
    void* allocateAsync(uint64_t size, uint64_t alignment, uint32_t flags,
                        cudaStream_t stream) noexcept override {
        return address(
            "allocate_async", [&] { return allocate(size, alignment, flags); }, size, alignment,
            flags, as_int(stream));
    }
    void* reallocate(void* memory, uint64_t alignment, uint64_t size) noexcept override {
        return address(
            "reallocate", [&] { return Base::reallocate(memory, alignment, size); }, as_int(memory),
            alignment, size);
    }
    bool deallocate(void* memory) noexcept override {
        return done(
            "deallocate", [&] { return Base::deallocate(memory); }, as_int(memory));
    }
    bool deallocateAsync(void* memory, cudaStream_t stream) noexcept override {
        return done(
            "deallocate_async", [&] { return deallocate(memory); }, as_int(memory), as_int(stream));
    }

private:
    template <class F, class... A>
    void* address(const MethodName& name, const F& otherwise, A... a) noexcept {
        bool overridden = true;
        void* const result = callback<void*>(name.text, nullptr, [&] {
            nb::object memory;
            overridden = call_overridden(nb_trampoline, name, memory, a...);
            return overridden ? pointer_from(memory) : nullptr;
        });
        return overridden ? result : otherwise();
    }
    template <class F, class... A>
    bool done(const MethodName& name, const F& otherwise, A... a) noexcept {
        bool overridden = true;
        const bool result = callback(name.text, false, [&] {
            nb::object answer;
            overridden = call_overridden(nb_trampoline, name, answer, a...);
            return overridden && (answer.is_none() || PyObject_IsTrue(answer.ptr()) == 1);
        });
        return overridden ? result : otherwise();
    }
};

/// The two methods of IGpuAsyncAllocator with a stream are pure.
class AsyncAllocatorBase : public trt::IGpuAsyncAllocator {
public:
    void* allocateAsync(uint64_t, uint64_t, uint32_t, cudaStream_t) noexcept override {
        return nullptr;
    }
    bool deallocateAsync(void*, cudaStream_t) noexcept override { return false; }
    void* allocate(uint64_t, uint64_t, uint32_t) noexcept override { return nullptr; }
    bool deallocate(void*) noexcept override { return false; }
};

void bind_allocators(nb::module_& m) {
    nb::class_<trt::IGpuAllocator, PyAllocator<trt::IGpuAllocator>> allocator(
        m, "IGpuAllocator",
        "Gives the library device memory (host memory on the CPU backend): subclass it and define "
        "allocate_async(self, size, alignment, flags, stream) -> int and deallocate_async(self, "
        "memory, stream) -> bool, or allocate and deallocate without stream; reallocate(self, "
        "address, alignment, new_size) -> int is optional. Sizes are bytes, 0 is no address. Calls "
        "come from several threads.");
    common(allocator);
    allocator.def(nb::init<>())
        .def(
            "allocate",
            [](trt::IGpuAllocator& a, uint64_t size, uint64_t alignment, uint32_t flags) {
                return as_int(a.allocate(size, alignment, flags));
            },
            "size"_a, "alignment"_a, "flags"_a,
            "The address of memory that is ready at once; 0: there is none.")
        .def(
            "reallocate",
            [](trt::IGpuAllocator& a, uintptr_t address, uint64_t alignment, uint64_t new_size) {
                return as_int(a.reallocate(as_pointer(address), alignment, new_size));
            },
            "address"_a, "alignment"_a, "new_size"_a,
            "The address of the memory with another size; 0: it stays as it was.")
        .def(
            "deallocate",
            [](trt::IGpuAllocator& a, uintptr_t memory) {
                return a.deallocate(as_pointer(memory));
            },
            "memory"_a, "Frees memory; False: it could not.")
        .def(
            "allocate_async",
            [](trt::IGpuAllocator& a, uint64_t size, uint64_t alignment, uint32_t flags,
               uintptr_t stream) {
                return as_int(
                    a.allocateAsync(size, alignment, flags, as_pointer<CUstream_st>(stream)));
            },
            "size"_a, "alignment"_a, "flags"_a, "stream"_a,
            "The address of memory that may be used on the stream from here on; 0: there is none. "
            "Calls allocate() unless it is overridden.")
        .def(
            "deallocate_async",
            [](trt::IGpuAllocator& a, uintptr_t memory, uintptr_t stream) {
                return a.deallocateAsync(as_pointer(memory), as_pointer<CUstream_st>(stream));
            },
            "memory"_a, "stream"_a,
            "Frees memory once the stream has passed this point. Calls deallocate() unless it is "
            "overridden.");
    nb::class_<AsyncAllocatorBase, trt::IGpuAllocator, PyAllocator<AsyncAllocatorBase>>(
        m, "IGpuAsyncAllocator", "An IGpuAllocator in the order of streams only.")
        .def(nb::init<>());
}

/// Copies what a read returned to where it belongs. Errors: BufferError.
int64_t copy_read(const nb::object& data, void* destination, int64_t room) {
    Py_buffer view;
    if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) {
        throw nb::python_error();
    }
    const int64_t count = view.len;
    if (count <= room && count > 0) {
        std::memcpy(destination, view.buf, static_cast<size_t>(count));
    }
    PyBuffer_Release(&view);
    if (count > room) {
        throw nb::value_error("read() returned more bytes than were asked for");
    }
    return count;
}

class PyStreamReader : public trt::IStreamReader {
public:
    NB_TRAMPOLINE(trt::IStreamReader);

    int64_t read(void* destination, int64_t size) override {
        return callback<int64_t>("IStreamReader.read", -1, [&] {
            return copy_read(call_python(nb_trampoline, "read", size), destination, size);
        });
    }
};

class PyStreamReaderV2 : public trt::IStreamReaderV2 {
public:
    NB_TRAMPOLINE(trt::IStreamReaderV2);

    // Memory of a GPU is filled by the library from host memory: IStreamReader-like objects give
    // bytes, so destinations on a device go through cudart in the Python class itself.
    int64_t read(void* destination, int64_t size, cudaStream_t stream) noexcept override {
        return callback<int64_t>("IStreamReaderV2.read", -1, [&] {
            return copy_read(call_python(nb_trampoline, "read", size, as_int(stream)), destination,
                             size);
        });
    }
    bool seek(int64_t offset, trt::SeekPosition where) noexcept override {
        return callback("IStreamReaderV2.seek", false, [&] {
            const nb::object done = call_python(nb_trampoline, "seek", offset, where);
            return done.is_none() || PyObject_IsTrue(done.ptr()) == 1;
        });
    }
};

class PyStreamWriter : public trt::IStreamWriter {
public:
    NB_TRAMPOLINE(trt::IStreamWriter);

    int64_t write(const void* data, int64_t size) override {
        return callback<int64_t>("IStreamWriter.write", -1, [&] {
            const nb::bytes bytes(data, static_cast<size_t>(size));
            return nb::cast<int64_t>(call_python(nb_trampoline, "write", bytes));
        });
    }
};

void bind_streams(nb::module_& m) {
    nb::class_<trt::IStreamReader, PyStreamReader> reader(
        m, "IStreamReader",
        "Source of an engine's bytes: subclass it and define read(self, size) "
        "-> bytes, empty at the end.");
    common(reader);
    reader.def(nb::init<>());
    nb::class_<trt::IStreamReaderV2, PyStreamReaderV2> reader2(
        m, "IStreamReaderV2",
        "Source of an engine's bytes: subclass it and define read(self, num_bytes, stream) -> "
        "bytes, empty at the end, and seek(self, offset, where) -> bool.");
    common(reader2);
    reader2.def(nb::init<>())
        .def("read", &undefined, nb::sig("def read(self, num_bytes: int, stream: int) -> bytes"),
             "The next bytes, at most num_bytes; none at the end.")
        .def("seek", &undefined,
             nb::sig("def seek(self, offset: int, where: SeekPosition) -> bool"),
             "Goes to a place. False when it cannot.");
    nb::class_<trt::IStreamWriter, PyStreamWriter> writer(
        m, "IStreamWriter",
        "Sink for an engine's bytes: subclass it and define write(self, data: "
        "bytes) -> int, how many were written.");
    common(writer);
    writer.def(nb::init<>())
        .def("write", &undefined, nb::sig("def write(self, data: bytes) -> int"),
             "Takes bytes. How many were written.");
}

} // namespace

void bind_memory_interfaces(nb::module_& m);

void bind_memory_interfaces(nb::module_& m) {
    bind_allocators(m);
    bind_streams(m);
}

} // namespace ingot::python
