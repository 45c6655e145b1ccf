// SPDX-License-Identifier: Apache-2.0
// ingot sign: puts the signature of a private key into an engine.
#include "api/options.h"
#include "api/options/common.h"
#include "api/options/run.h"
#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "engine/trust.h"

#include <cstdio>

namespace ingot::tool {

int sign(const Options& o) {
    const std::string& path = o.run().private_key;
    require(!path.empty(), ErrorCode::InvalidArgument,
            "say with --key which private key signs; 'openssl genpkey -algorithm ed25519 -out "
            "key.pem' makes one");
    Ed25519PrivateKey key =
        with_place([&] { return path; },
                   [&] { return private_key_from_pem(read_text_file(path, 1U << 16U)); });
    const std::string& out = o.common().output.empty() ? o.model : o.common().output;
    sign_engine(o.model, out, key);
    std::printf("%s: signed by key %s\n", out.c_str(), key_name(public_key_of(key)).c_str());
    return 0;
}

} // namespace ingot::tool
