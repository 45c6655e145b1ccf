// SPDX-License-Identifier: Apache-2.0
// Settings of layers: each line is a setter, a getter and a member of a class that derives from
// Layer<Interface>.
#pragma once

#include "api/tensorrt/network/network.h"

// Any value will do, or what is wrong with it depends on others and is said when it is emitted.
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

// A setting that has to pass check(v), which throws.
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

// A number of an enumeration. `what` names it in messages.
#define INGOT_ENUM_SETTING(Interface, Type, Name, member, initial, what)                           \
    INGOT_CHECKED_SETTING(Interface, Type, Type, Name, member, initial, checked(v, what))

// A shape of the numbers that a layer needs.
#define INGOT_DIMS_SETTING(Interface, Name, member, initial, check)                                \
    INGOT_CHECKED_SETTING(Interface, nv::Dims, const nv::Dims&, Name, member, initial, check)
