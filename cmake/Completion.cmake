# SPDX-License-Identifier: MIT
#
# shuf_completion(PROGRAM): installs the completion of a program for bash, zsh and fish. The
# program prints it from the tables of its options.
set(SHUF_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
    CACHE STRING "Where zsh finds completions, below the prefix")

function(shuf_completion_file program shell name directory)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/completion/${name})
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/completion
    COMMAND ${program} --completion ${shell} >${file}
    DEPENDS ${program})
  add_custom_target(${program}-completion-${shell} ALL DEPENDS ${file})
  set_property(GLOBAL APPEND PROPERTY SHUF_COMPLETIONS ${program}-completion-${shell})
  install(FILES ${file} DESTINATION ${directory})
endfunction()

function(shuf_completion program)
  shuf_completion_file(${program} bash ${program}
                       ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  shuf_completion_file(${program} zsh _${program} ${SHUF_ZSH_DIR})
  shuf_completion_file(${program} fish ${program}.fish
                       ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()
