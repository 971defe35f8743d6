# SPDX-License-Identifier: MIT
#
# Writes the units with the paths of the installed files, and installs them.
foreach(name bindir libexecdir datadir)
  if(NOT IS_ABSOLUTE "${${name}}")
    set(${name} ${CMAKE_INSTALL_PREFIX}/${${name}})
  endif()
endforeach()
set(lib ${CMAKE_INSTALL_PREFIX}/${systemd_dir})
set(unitdir ${lib}/systemd/system)
file(STRINGS ${source}/syscall-filter.txt calls REGEX "^[a-z@]")
list(TRANSFORM calls REPLACE "^driver: " "")
list(JOIN calls " " syscall_filter)

# install_configured(FILE DESTINATION NAME [PROGRAM]) installs FILE as NAME, and adds it to the list
# of installed files, which `uninstall` reads.
function(install_configured file destination name)
  configure_file(${source}/${file} ${build}/${name} @ONLY)
  set(permissions OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  if(ARGN)
    list(APPEND permissions OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
  endif()
  file(INSTALL DESTINATION ${destination} TYPE FILE PERMISSIONS ${permissions}
       FILES ${build}/${name})
  set(CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_MANIFEST_FILES}" PARENT_SCOPE)
endfunction()

# Called twice: for the daemon of a machine with one GPU or none, and for the instances of a machine
# with several GPUs, one for each GPU.
function(install_daemon unit description options socket socket_name install)
  install_configured(shufd.service.in ${unitdir} ${unit}.service)
  install_configured(shufd.socket.in ${unitdir} ${unit}.socket)
  set(CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_MANIFEST_FILES}" PARENT_SCOPE)
endfunction()
install_daemon(shufd "shufd, permutations and random numbers" "" shufd.socket shufd
               "WantedBy=sockets.target")
install_daemon(shufd@ "shufd on %i" "--backend cuda:%i" shufd@%i.socket %i "WantedBy=shufd.target")

install_configured(shufd.target ${unitdir} shufd.target)
install_configured(shufd-gpus.service.in ${unitdir} shufd-gpus.service)
install_configured(shufd-instances.service.in ${unitdir} shufd-instances.service)
install_configured(shufd-generator.in ${lib}/systemd/system-generators shufd-generator PROGRAM)
install_configured(make-gpu-files ${libexecdir}/shufd make-gpu-files PROGRAM)
install_configured(make-instances ${libexecdir}/shufd make-instances PROGRAM)
foreach(drop_in no-gpu metrics-file metrics-port)
  install_configured(${drop_in}.conf.in ${datadir}/shufd ${drop_in}.conf)
endforeach()
install_configured(sysusers.conf ${lib}/sysusers.d shufd.conf)
install_configured(tmpfiles.conf ${lib}/tmpfiles.d shufd.conf)
