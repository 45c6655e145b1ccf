// SPDX-License-Identifier: Apache-2.0
// The commands' requests to a server.
#pragma once

#include <string>

namespace ingot::serving {

struct HttpAnswer {
    int status = 0;
    std::string body;
};
/// Asks `url`, http://HOST:PORT, for `path`; with a body by POST, which is JSON. Errors:
/// InvalidArgument for another form of URL, Io naming it when no answer comes.
HttpAnswer http_get(const std::string& url, const std::string& path, double seconds);
HttpAnswer http_post(const std::string& url, const std::string& path, const std::string& body,
                     double seconds);

} // namespace ingot::serving
