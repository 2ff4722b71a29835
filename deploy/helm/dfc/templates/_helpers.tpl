{{/* Names of objects begin with the release's. */}}
{{- define "dfc.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "dfc.clusterKey" -}}
{{ .Values.secrets.clusterKey | default (printf "%s-cluster-key" .Release.Name) }}
{{- end }}

{{- define "dfc.rootKey" -}}
{{ .Values.secrets.rootKey | default (printf "%s-root-key" .Release.Name) }}
{{- end }}

{{/* A service's name, short and in full: (list prefix service domain) */}}
{{- define "dfc.hosts" -}}
{{- $name := printf "%s%s" (index . 0) (index . 1) -}}
{{ $name }},{{ $name }}.$(POD_NAMESPACE),{{ $name }}.$(POD_NAMESPACE).svc,{{ $name }}.$(POD_NAMESPACE).svc.{{ index . 2 }}
{{- end }}

{{/* The control listeners of all proxies. */}}
{{- define "dfc.control" -}}
{{- range $i := until (int .Values.proxies.replicas) }}{{ if $i }},{{ end -}}
http://{{ $.Release.Name }}-proxy-{{ $i }}.{{ $.Release.Name }}-proxy:9080
{{- end }}
{{- end }}

{{/* The chart's etcd. */}}
{{- define "dfc.etcd" -}}
etcd://
{{- range $i := until (int .Values.etcd.replicas) }}{{ if $i }},{{ end -}}
{{ $.Release.Name }}-etcd-{{ $i }}.{{ $.Release.Name }}-etcd:2379
{{- end }}
{{- end }}

{{/* Where several proxies keep the documents. */}}
{{- define "dfc.metastore" -}}
{{- if not .Values.etcd.enabled }}{{ .Values.metastore }}
{{- else if .Values.etcd.used }}{{ include "dfc.etcd" . }}
{{- end }}
{{- end }}

{{/* Where the proxies that run have the documents: "volume", "etcd"; or nothing, if none runs. */}}
{{- define "dfc.runsWith" -}}
{{- $runs := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-proxy" .Release.Name) }}
{{- if $runs }}
{{- $names := list }}
{{- range $runs.spec.template.spec.containers }}{{ range .env }}{{ $names = append $names .name }}{{ end }}{{ end }}
{{- if has "DFC_METASTORE" $names }}etcd{{ else }}volume{{ end }}
{{- end }}
{{- end }}

{{/* A time such as 30s in ms. */}}
{{- define "dfc.milliseconds" -}}
{{ mul (regexFind "^[0-9]+" . | int64) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind "[a-z]+$" .)) }}
{{- end }}

{{/* The mountpaths of a target: /data/mp1, /data2/mp1, … */}}
{{- define "dfc.mountpaths" -}}
{{- range $i := until (int .Values.targets.disks) }}{{ if $i }},{{ end }}/data{{ if $i }}{{ add1 $i }}{{ end }}/mp1{{ end }}
{{- end }}

{{/* Parameters as variables of the environment. */}}
{{- define "dfc.settings" -}}
{{- range $name, $value := . }}
            - {name: DFC_{{ $name | replace "-" "_" | upper }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{/* Which machines: (list nodeSelector tolerations) */}}
{{- define "dfc.machines" -}}
{{- with index . 0 }}
      nodeSelector: {{ toJson . }}
{{- end }}
{{- with index . 1 }}
      tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "dfc.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
      imagePullSecrets:
{{- range . }}
        - {name: {{ . }}}
{{- end }}
{{- end }}
{{- end }}

{{/* A volume of each pod: (list name size class) */}}
{{- define "dfc.claim" }}
    - metadata: {name: {{ index . 0 }}}
      spec:
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: {{ index . 1 }}}}
{{- with index . 2 }}
        storageClassName: {{ . }}
{{- end }}
{{- end }}
