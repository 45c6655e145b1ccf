// SPDX-License-Identifier: Apache-2.0
// IOnnxConfig: a record of file names and verbosity that some programs pass around. The library
// does not use it; all of it is here.
#pragma once

#include "NvInfer.h"

#include <string>

namespace nvonnxparser {

/// Made by createONNXConfig(); the caller deletes it. Used by one thread at a time. No method
/// fails: strings are copied, without memory for one it stays as it is; there are no errors.
class IOnnxConfig {
public:
    using Verbosity = int32_t;

    virtual ~IOnnxConfig() noexcept = default;
    IOnnxConfig(const IOnnxConfig&) = delete;
    IOnnxConfig(IOnnxConfig&&) = delete;
    IOnnxConfig& operator=(const IOnnxConfig&) = delete;
    IOnnxConfig& operator=(IOnnxConfig&&) = delete;

    /// Default kFLOAT.
    virtual void setModelDtype(nvinfer1::DataType) noexcept = 0;
    virtual nvinfer1::DataType getModelDtype() const noexcept = 0;
    /// nullptr until it is set, as the other names.
    virtual const char* getModelFileName() const noexcept = 0;
    virtual void setModelFileName(const char* onnxFilename) noexcept = 0;
    /// Default kWARNING.
    virtual Verbosity getVerbosityLevel() const noexcept = 0;
    virtual void addVerbosity() noexcept = 0;
    virtual void reduceVerbosity() noexcept = 0;
    virtual void setVerbosityLevel(Verbosity) noexcept = 0;
    virtual const char* getTextFileName() const noexcept = 0;
    virtual void setTextFileName(const char* textFileName) noexcept = 0;
    virtual const char* getFullTextFileName() const noexcept = 0;
    virtual void setFullTextFileName(const char* fullTextFileName) noexcept = 0;
    /// Default false.
    virtual bool getPrintLayerInfo() const noexcept = 0;
    virtual void setPrintLayerInfo(bool) noexcept = 0;

protected:
    IOnnxConfig() = default;
};

namespace impl {

/// The class that createONNXConfig() makes.
class OnnxConfig final : public IOnnxConfig {
public:
    void setModelDtype(nvinfer1::DataType type) noexcept override { type_ = type; }
    nvinfer1::DataType getModelDtype() const noexcept override { return type_; }
    const char* getModelFileName() const noexcept override { return model_.get(); }
    void setModelFileName(const char* name) noexcept override { model_.set(name); }
    Verbosity getVerbosityLevel() const noexcept override { return verbosity_; }
    void addVerbosity() noexcept override { ++verbosity_; }
    void reduceVerbosity() noexcept override { --verbosity_; }
    void setVerbosityLevel(Verbosity verbosity) noexcept override { verbosity_ = verbosity; }
    const char* getTextFileName() const noexcept override { return text_.get(); }
    void setTextFileName(const char* name) noexcept override { text_.set(name); }
    const char* getFullTextFileName() const noexcept override { return full_text_.get(); }
    void setFullTextFileName(const char* name) noexcept override { full_text_.set(name); }
    bool getPrintLayerInfo() const noexcept override { return print_; }
    void setPrintLayerInfo(bool print) noexcept override { print_ = print; }

private:
    class Name {
    public:
        const char* get() const noexcept { return is_set_ ? text_.c_str() : nullptr; }
        void set(const char* text) {
            is_set_ = text != nullptr;
            text_ = is_set_ ? text : "";
        }

    private:
        std::string text_;
        bool is_set_ = false;
    };

    Name model_;
    Name text_;
    Name full_text_;
    nvinfer1::DataType type_ = nvinfer1::DataType::kFLOAT;
    Verbosity verbosity_ = static_cast<Verbosity>(nvinfer1::ILogger::Severity::kWARNING);
    bool print_ = false;
};

} // namespace impl

inline IOnnxConfig* createONNXConfig() {
    return new impl::OnnxConfig;
}

} // namespace nvonnxparser
