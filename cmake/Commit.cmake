# SPDX-License-Identifier: MIT
#
# shuf::commit: a header, commit.h, that defines SHUF_COMMIT. Each build writes it anew if the
# commit has changed, so a report names the right one.
add_custom_target(
  shuf_commit_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
          -DOUT=${PROJECT_BINARY_DIR}/commit/commit.h
          -P ${PROJECT_SOURCE_DIR}/cmake/CommitHeader.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/commit/commit.h)
add_library(shuf_commit INTERFACE)
add_library(shuf::commit ALIAS shuf_commit)
add_dependencies(shuf_commit shuf_commit_header)
target_include_directories(shuf_commit INTERFACE ${PROJECT_BINARY_DIR}/commit)
