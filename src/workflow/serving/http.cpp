// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/http.h"

#include "base/error.h"
#include "base/socket.h"

#include <charconv>

namespace ingot::serving {

namespace {

constexpr std::string_view scheme = "http://";

/// The answer ends where the connection does.
HttpAnswer ask(const std::string& url, const std::string& path, std::string_view method,
               std::string_view headers, std::string_view body, double seconds) {
    std::string place = url.starts_with(scheme) ? url.substr(scheme.size()) : std::string();
    while (place.ends_with('/')) {
        place.pop_back();
    }
    size_t colon = place.rfind(':');
    require(colon != std::string::npos && colon > 0 && colon + 1 < place.size() &&
                place.find('/') == std::string::npos,
            ErrorCode::InvalidArgument, "'", url, "': http://HOST:PORT is expected");
    std::string host = place.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) { // an IPv6 address
        host = host.substr(1, host.size() - 2);
    }
    std::string answer = exchange_tcp(host, place.substr(colon + 1),
                                      str(method, ' ', path, " HTTP/1.1\r\nHost: ", place,
                                          "\r\nConnection: close\r\n", headers, "\r\n", body),
                                      seconds);
    HttpAnswer out;
    size_t status = answer.find(' ');
    size_t end = answer.find("\r\n\r\n");
    require(answer.starts_with("HTTP/1.") && status != std::string::npos &&
                end != std::string::npos,
            ErrorCode::Io, url, path, ": no HTTP came back");
    std::from_chars(answer.data() + status + 1, answer.data() + answer.size(), out.status);
    out.body = answer.substr(end + 4);
    return out;
}

} // namespace

HttpAnswer http_get(const std::string& url, const std::string& path, double seconds) {
    return ask(url, path, "GET", "", "", seconds);
}

HttpAnswer http_post(const std::string& url, const std::string& path, const std::string& body,
                     double seconds) {
    return ask(url, path, "POST",
               str("Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n"), body,
               seconds);
}

} // namespace ingot::serving
