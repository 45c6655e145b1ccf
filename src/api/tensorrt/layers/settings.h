// SPDX-License-Identifier: Apache-2.0
// Settings of layers: each line defines a setter, a getter and a member in a class derived from
// Layer<Interface>.
#pragma once

#include "api/tensorrt/network/network.h"

// Accepts any value; emit() reports values that conflict with other settings.
#define INGOT_SETTING(Type, Name, member, initial)                                                 \
public:                                                                                            \
    void set##Name(Type v) noexcept override {                                                     \
        assign("set" #Name, member, v);                                                            \
    }                                                                                              \
    Type get##Name() const noexcept override {                                                     \
        return member;                                                                             \
    }                                                                                              \
                                                                                                   \
private:                                                                                           \
    Type member = initial;

// A setting that must pass check(v), which throws.
#define INGOT_CHECKED_SETTING(Interface, Type, Parameter, Name, member, initial, check)            \
public:                                                                                            \
    void set##Name(Parameter v) noexcept override {                                                \
        change(#Interface "::set" #Name, [&] {                                                     \
            (check);                                                                               \
            (member) = v;                                                                          \
        });                                                                                        \
    }                                                                                              \
    Type get##Name() const noexcept override {                                                     \
        return member;                                                                             \
    }                                                                                              \
                                                                                                   \
private:                                                                                           \
    Type member = initial;

// An enumerator. `what` names it in messages.
#define INGOT_ENUM_SETTING(Interface, Type, Name, member, initial, what)                           \
    INGOT_CHECKED_SETTING(Interface, Type, Type, Name, member, initial, checked(v, what))

// A shape with the rank that the layer needs.
#define INGOT_DIMS_SETTING(Interface, Name, member, initial, check)                                \
    INGOT_CHECKED_SETTING(Interface, nv::Dims, const nv::Dims&, Name, member, initial, check)
